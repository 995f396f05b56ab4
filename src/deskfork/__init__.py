"""deskfork: fork real desktop VMs, run code-centric agents in them, measure what they did."""
