//! Fits a linear model: one weight for each feature and reason, by steps down the gradient of the
//! logistic loss. The order of the steps is the same every time.

use backstop_classify::learned::{FEATURES, Vector};

const ROUNDS: usize = 20;
const STEP: f32 = 0.6;
/// How much a weight shrinks in each round.
const SHRINK: f32 = 0.002;

/// One vector with the number of its reason and how much it counts.
pub(crate) struct Point<'v> {
    pub(crate) vector: &'v Vector,
    pub(crate) class: usize,
    pub(crate) weight: f32,
}

/// Weights, all reasons of a feature side by side, and what is added for each reason.
pub(crate) struct Model {
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    classes: usize,
}

impl Model {
    pub(crate) fn fit(points: &[Point<'_>], classes: usize) -> Self {
        let mut model = Self { weights: vec![0.0; FEATURES * classes], bias: vec![0.0; classes], classes };
        let mut squares = vec![1e-3_f32; FEATURES * classes];
        let mut order: Vec<usize> = (0..points.len()).collect();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..ROUNDS {
            for last in (1..order.len()).rev() {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                order.swap(last, (state % (last as u64 + 1)) as usize);
            }
            for at in &order {
                model.step(&points[*at], &mut squares);
            }
            for weight in &mut model.weights {
                *weight *= 1.0 - SHRINK;
            }
        }
        model
    }

    fn step(&mut self, point: &Point<'_>, squares: &mut [f32]) {
        let mut wrong = self.probabilities(point.vector);
        wrong[point.class] -= 1.0;
        for (feature, value) in point.vector {
            let at = *feature as usize * self.classes;
            for (class, wrong) in wrong.iter().enumerate() {
                let gradient = wrong * value * point.weight;
                let square = &mut squares[at + class];
                *square += gradient * gradient;
                self.weights[at + class] -= STEP * gradient / square.sqrt();
            }
        }
        for (bias, wrong) in self.bias.iter_mut().zip(&wrong) {
            *bias -= 0.01 * wrong * point.weight;
        }
    }

    pub(crate) fn probabilities(&self, vector: &Vector) -> Vec<f32> {
        let mut scores = self.bias.clone();
        for (feature, value) in vector {
            let at = *feature as usize * self.classes;
            for (score, weight) in scores.iter_mut().zip(&self.weights[at..at + self.classes]) {
                *score += value * weight;
            }
        }
        let most = scores.iter().copied().fold(f32::MIN, f32::max);
        for score in &mut scores {
            *score = (*score - most).exp();
        }
        let total: f32 = scores.iter().sum();
        scores.iter().map(|score| score / total).collect()
    }
}
