"""Acting by values: a behavior policy, weighted by what each token is worth."""
