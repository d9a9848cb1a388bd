"""Work in batches to results in order: `local` runs it on this machine, `ledger` remembers what is done."""
