"""States to pairs to a policy: what a recovery operation rescues and harms, and when to use it (METHODS 4).

One continuation with and one without recovery from one saved state make a pair. `table` reads pairs, `contrast` tells
what an operation does to them, `cir` and `direct` learn when to use it, `certify` limits the harm that may do,
`evaluate` tries policies on held-out tasks, `router` is what is deployed; it needs the standard library alone.
"""
