# Restores the files of the instance's tests from the start commit. Requires $folder and files.sh.
set -u
cd "$folder" || exit 1
test_files | tr '\n' '\0' | xargs -0 -r git --literal-pathspecs checkout -q --
