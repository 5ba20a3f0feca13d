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
    /// Those that it says it may run beside.
    pub(crate) with: Vec<usize>,
}

/// What each phase waits for, and which may run at the same time.
pub(crate) fn sequence(places: &[Place]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut depends_on: Vec<Vec<usize>> = Vec::with_capacity(places.len());
    let mut waves: Vec<Vec<usize>> = Vec::new();
    // Those that nothing waits for yet, and what the current wave waits for.
    let (mut open, mut before): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut wave: Vec<usize> = Vec::new();
    let with = both_ways(places);
    for (at, place) in places.iter().enumerate() {
        let earlier = with[at].iter().copied().find(|other| *other < at);
        let joins = wave.last().is_some_and(|last| {
            let is_beside = place.beside && places[*last].beside && places[*last].group == place.group;
            (is_beside || with[at].iter().any(|other| wave.contains(other))) && wave.len() < BESIDE_MAX
        });
        if !joins {
            waves.push(std::mem::take(&mut wave));
        }
        let mut on = match &place.named {
            Some(named) => named.clone(),
            None if joins => before.clone(),
            None => match earlier {
                Some(other) => depends_on[other].clone(),
                None => open.clone(),
            },
        };
        if !joins {
            before.clone_from(&open);
        }
        on.sort_unstable();
        on.dedup();
        if place.named.is_some() || !(joins || earlier.is_some()) {
            open.retain(|sink| !on.contains(sink));
        }
        open.push(at);
        wave.push(at);
        depends_on.push(on);
    }
    waves.push(wave);
    let pairs = with.iter().enumerate().flat_map(|(at, others)| others.iter().map(move |other| (at, *other)));
    waves.extend(pairs.filter(|(at, other)| other < at).map(|(at, other)| vec![other, at]));
    (depends_on.clone(), side_by_side(&depends_on, &waves, places.len()))
}

/// What each may run beside, said by either of the two.
fn both_ways(places: &[Place]) -> Vec<Vec<usize>> {
    let mut with: Vec<Vec<usize>> = vec![Vec::new(); places.len()];
    for (at, place) in places.iter().enumerate() {
        for &other in place.with.iter().filter(|other| **other != at) {
            with[at].push(other);
            with[other].push(at);
        }
    }
    for list in &mut with {
        list.sort_unstable();
        list.dedup();
    }
    with
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
            beside[one]
                .extend(wave.iter().copied().filter(|other| *other != one && !reach.either(one, *other)));
        }
    }
    for list in &mut beside {
        list.sort_unstable();
        list.dedup();
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
                with: word.split_once('|').map_or(Vec::new(), |(_, with)| vec![with.parse().unwrap()]),
                named: word.split('|').next().unwrap().split_once('<').map(|(_, named)| {
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
        assert_eq!(of("a b c|1 d"), " ; 0|2 ; 0|1 ; 1,2");
        assert_eq!(of("a b|2 c d"), " ; 0|2 ; 0|1 ; 1,2", "said by the first of the two");
        assert_eq!(of("a b c d|1 e"), " ; 0|3 ; 1 ; 0|1 ; 2,3", "not its neighbour");
        assert_eq!(of("p p<0 c"), " ; 0 ; 1", "what waits for the other is not beside it");
    }
}
