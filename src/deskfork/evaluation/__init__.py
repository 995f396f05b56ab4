"""Layer 3: getters, metrics and the evaluator that turns a final state into a score."""
