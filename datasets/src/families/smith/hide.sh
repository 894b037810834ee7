# Removes the hidden test files, as SWE-smith's commit "Remove F2P Tests" does, and compiled Python files.
# Requires $folder and hidden.sh.
set -u
cd "$folder" || exit 1
hidden_files | while IFS= read -r file; do
  rm -f -- "./$file" || exit 1
done || exit 1
# Compiled files contain the fixed code and the tests.
find . -name __pycache__ -type d -prune -exec rm -rf {} +
rm -rf .pytest_cache
