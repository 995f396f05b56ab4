#!/bin/bash
set -e
mkdir -p "$HOME/Desktop/logs"
cd "$HOME/Desktop/logs"
for month in 2023-11 2023-12 2024-01 2024-02 2024-03; do
    echo "$month: all quiet" > "app-$month.log"
done
echo "2024 was a good year" > notes-2024.txt
