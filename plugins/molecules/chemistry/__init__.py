"""The chemistry worker: verifier tiers in Python, served by the contract in core/tier-contract.ts."""
