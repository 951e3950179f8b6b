"""Random schema changes, on which the verdicts and witnesses of the contract gate are checked.

Run `python -m conformance.contract --pairs 20000 --seed 1`. Nothing here uses the prover or the
samples of the gate: schemas, values and judgement come from this package and from the `jsonschema`
package.
"""
