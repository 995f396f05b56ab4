#!/bin/bash
cd "$HOME/Desktop/logs" || exit 1
for name in *; do
    echo "kept $name"
done
tar -tzf logs-2024.tar.gz | sed 's|^\./||; s|.*/||' | sed 's/^/packed /'
for name in app-2024-01.log app-2024-03.log; do
    echo "inside $(tar -xzOf logs-2024.tar.gz --wildcards "*$name")"
done
