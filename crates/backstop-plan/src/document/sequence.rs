//! What waits for what where a document says it by order: each after those before it, and what may
//! run side by side after the same ones.

use backstop_core::order as graph;

/// The most phases that are declared parallel with each other by standing side by side; more go in
/// a further wave.
const BESIDE_MAX: usize = 100;

/// A phase as the order of a document shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// What it says it waits for; nothing where it says nothing, so that order is order.
    pub(crate) named: Option<Vec<usize>>,
    /// Whether it may run beside its neighbours that may, too.
    pub(crate) beside: bool,
    /// The group that it is in: neighbours are of the same group.
    pub(crate) group: usize,
}

/// What each phase waits for, and which may run at the same time.
pub(crate) fn sequence(places: &[Place]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut depends_on: Vec<Vec<usize>> = Vec::with_capacity(places.len());
    let mut waves: Vec<Vec<usize>> = Vec::new();
    // Those that nothing waits for yet, and what the current wave waits for.
    let (mut open, mut before): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut wave: Vec<usize> = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let joins = wave.last().is_some_and(|last| {
            place.beside
                && places[*last].beside
                && places[*last].group == place.group
                && wave.len() < BESIDE_MAX
        });
        if !joins {
            waves.push(std::mem::take(&mut wave));
        }
        let mut on = match &place.named {
            Some(named) => named.clone(),
            None if joins => before.clone(),
            None => open.clone(),
        };
        if !joins {
            before.clone_from(&open);
        }
        on.sort_unstable();
        on.dedup();
        if place.named.is_some() || !joins {
            open.retain(|sink| !on.contains(sink));
        }
        open.push(at);
        wave.push(at);
        depends_on.push(on);
    }
    waves.push(wave);
    (depends_on.clone(), side_by_side(&depends_on, &waves, places.len()))
}

/// Those of a wave that do not wait for each other.
fn side_by_side(depends_on: &[Vec<usize>], waves: &[Vec<usize>], count: usize) -> Vec<Vec<usize>> {
    let mut beside = vec![Vec::new(); count];
    let wide: Vec<&Vec<usize>> = waves.iter().filter(|wave| wave.len() > 1).collect();
    if wide.is_empty() || graph::cycle(depends_on).is_some() {
        return beside;
    }
    let reach = graph::Reach::new(depends_on);
    for wave in wide {
        for &one in wave {
            beside[one] =
                wave.iter().copied().filter(|other| *other != one && !reach.either(one, *other)).collect();
        }
    }
    beside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let places: Vec<Place> = text
            .split_whitespace()
            .map(|word| Place {
                beside: word.contains('p'),
                named: word.split_once('<').map(|(_, named)| {
                    named.split(',').filter(|one| !one.is_empty()).map(|one| one.parse().unwrap()).collect()
                }),
                group: usize::from(word.contains('g')),
            })
            .collect();
        let (on, beside) = sequence(&places);
        let shown = |(on, beside): (&Vec<usize>, &Vec<usize>)| {
            let list = |list: &[usize]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            format!(
                "{}{}",
                list(on),
                if beside.is_empty() { String::new() } else { format!("|{}", list(beside)) }
            )
        };
        on.iter().zip(&beside).map(shown).collect::<Vec<_>>().join(" ; ")
    }

    #[test]
    fn order_is_order_and_neighbours_may_run_side_by_side() {
        assert_eq!(of("a b c"), " ; 0 ; 1");
        assert_eq!(of("a p p c"), " ; 0|2 ; 0|1 ; 1,2");
        assert_eq!(of("p p gp gp"), "|1 ; |0 ; 0,1|3 ; 0,1|2");
        assert_eq!(of("a b c<0 d"), " ; 0 ; 0 ; 1,2");
        assert_eq!(of("a< b< c<0,1"), " ;  ; 0,1");
        assert_eq!(of("p p<0 c"), " ; 0 ; 1", "what waits for the other is not beside it");
    }
}
