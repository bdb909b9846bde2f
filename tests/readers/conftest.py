"""Programs in `tools/` run in environments of the tools whose files they write."""

collect_ignore_glob = ["tools/*"]
