/**
 * Unusual changes of an agent to its tree, in addition to the fix. The tree at the start plus the patch must equal the tree at the end, and
 * the fix must keep its reward.
 */

/** Files of the image beside the project: all kinds, some of which its repository ignores. */
export const EXTRAS = `printf '_version.py\\n*.cache\\n/made/\\n/half/*.tmp\\n' >.gitignore
mkdir -p made/deep half docs 'odd dir' sub bin many
echo 'version = 1' >_version.py; printf '\\0\\1\\377' >a.cache; echo egg >made/egg.txt; echo more >made/deep/more.txt
echo one >half/one.txt; echo tmp >half/x.tmp; echo b >docs/b.txt; printf 'caf\\351\\n' >docs/latin1.txt; printf 'a\\r\\nb\\r\\n' >docs/dos.txt
printf '\\0\\1\\2' >docs/data.bin; printf 'no end' >docs/noend.txt; : >docs/empty.txt; printf '#!/bin/sh\\n' >bin/tool; chmod +x bin/tool
ln -s docs/b.txt link; ln -s docs folderlink; echo gone >'odd dir/gone é.txt'; echo low >docs/case.txt
for n in 1 2 3; do echo $n >many/$n.txt; done
git -C sub init -q; echo inner >sub/inner.txt; git -C sub add -A; git -C sub -c user.name=n -c user.email=e@x commit -qm inner
printf 'a\\n' >dirty.txt`;
/** Makes uncommitted edits and untracked files after the commit. */
export const DIRT = `printf 'b\\n' >>dirty.txt; echo untracked >notes.txt`;
export const FIX = `sed -i 's/a - b/a + b/' calc/__init__.py`;

export type HonestTree = {
  name: string;
  script: string;
  /** Paths that only the agent's tree has, because the patch omits them by its rules. */
  litter?: RegExp;
};
/** What an agent does beside the fix, by its name; with the litter where there is some. */
type Scripts = Readonly<Record<string, string | [script: string, litter: RegExp]>>;

const COMMIT = 'git -c user.name=n -c user.email=e@x commit -q';
const python = (code: string): string => `python3 - <<'PY'\n${code}\nPY`;

const IGNORED: Scripts = {
  '.gitignore is removed': 'rm .gitignore',
  '.gitignore ignores nothing': `printf '!*\\n' >.gitignore`,
  'a folder shows what the root ignores': `printf '!*\\n' >made/.gitignore; printf '!/made/\\n' >>.gitignore`,
  'an ignored file is shown': `printf '!_version.py\\n' >>.gitignore`,
  'a new file in a folder that was ignored': `printf '!/made/\\n!/made/**\\n' >>.gitignore; echo new >made/new.txt`,
  'a new file beside ignored ones, which are shown': `printf '!/half/*.tmp\\n' >>.gitignore; echo new >half/new.txt`,
  'more is ignored, tracked files among it': `printf 'docs/\\ncalc/\\n' >>.gitignore; echo c >>docs/b.txt`,
  'everything is ignored': `printf '*\\n' >>.gitignore; echo c >>docs/b.txt`,
  'ignored files are removed': ['rm -rf made; rm -f a.cache _version.py', /^(?:made|a\.cache|_version\.py)/],
  'ignored by the repository alone': `printf 'local.txt\\n' >>.git/info/exclude; echo x >docs/new.txt`,
  'litter of tests and builds': [
    'mkdir -p calc/__pycache__ x.egg-info; echo x >calc/__pycache__/a.pyc; echo x >x.egg-info/PKG-INFO; echo x >y.cache',
    /__pycache__|egg-info|y\.cache/,
  ],
};

const REPOSITORIES: Scripts = {
  'a nested repository loses its .git': 'rm -rf sub/.git',
  'a nested repository has a new commit': [
    `echo more >>sub/inner.txt; git -C sub -c user.name=n -c user.email=e@x commit -qam more`,
    /^sub/,
  ],
  'a nested repository is removed': ['rm -rf sub', /^sub/],
  'a folder becomes a repository': 'git -C docs init -q; echo c >>docs/b.txt',
  'a repository is cloned into the tree': ['git clone -q . other', /^other/],
  'a submodule is added': ['git -c protocol.file.allow=always submodule --quiet add ./sub mod', /^mod/],
};

const FILES: Scripts = {
  'links that are new, changed, and gone':
    'ln -sfn docs/dos.txt link; rm folderlink; ln -s nowhere dangling; ln -s .. up',
  'a file becomes a link, and a link a file':
    'rm docs/b.txt; ln -s dos.txt docs/b.txt; rm link; echo file >link',
  'a file becomes a folder, and a folder a file':
    'rm docs/b.txt; mkdir docs/b.txt; echo in >docs/b.txt/in; rm -r many; echo file >many',
  'a folder becomes a link': 'mv many moved; ln -s moved many',
  'a link becomes a folder': 'rm folderlink; mkdir folderlink; echo x >folderlink/x',
  modes: 'chmod -x bin/tool; chmod +x docs/b.txt; chmod 600 docs/dos.txt; echo x >run; chmod 755 run',
  'carriage returns': `printf 'a\\r\\nc\\r\\n' >docs/dos.txt; printf 'x\\r\\n' >docs/new.txt; printf 'x\\ry\\r' >docs/old.txt`,
  'trailing blanks, tabs and blank last lines': `printf 'a  \\n\\t\\nb\\t\\n\\n\\n' >docs/blank.txt; printf 'b \\n\\n' >>docs/b.txt`,
  'no newline at the end, added and taken away': `printf 'end\\n' >docs/noend.txt; printf b >docs/b.txt; printf x >docs/x.txt`,
  'binary files': `printf '\\0\\2\\377' >docs/data.bin; head -c 5000 /dev/urandom >docs/random.bin; printf '\\0' >docs/b.txt`,
  'text of Latin-1': `printf 'caf\\351s\\n' >docs/latin1.txt; printf '\\377\\376x\\n' >docs/new.txt`,
  '3,000 files': 'mkdir lots; for n in $(seq 3000); do echo $n >lots/$n.txt; done',
  'names of any bytes': python(
    'import os\nfor name in (b"a b", b"a\\nb", b"a\\tb", b\'a"b\', b"a\\\\b", b"\\xe9t\\xe9", "\\u00fc\\u4e2d".encode(), b"-x", b"*", b"[a]?", b"$(x)", b":(top)x", b" ", b"c d/ e", b"\\xff/\\xfe"):\n    os.makedirs(os.path.dirname(b"odd dir/" + name), exist_ok=True)\n    open(b"odd dir/" + name, "w").write("x\\n")',
  ),
  renames:
    'mv docs/b.txt docs/c.txt; mv docs/data.bin half/data.bin; mv many lots; git mv -f docs/dos.txt bin/',
  'a rename of case alone': 'mv docs/case.txt docs/Case.txt',
  'empty files and folders': 'mkdir -p void/deep; : >void.txt; : >docs/b.txt; rm docs/empty.txt',
  'deleted files and folders': `rm -r docs many 'odd dir'`,
  'files that hold diffs': `git diff HEAD >docs/own.diff; printf -- '--- a/x\\n+++ b/x\\n@@ -1 +1 @@\\n-a\\n+b\\ndiff --git a/y b/y\\nindex 1..2 160000\\n' >docs/fake.txt`,
  'files named as patches and rejects':
    'echo x >fix.patch; echo x >fix.diff; mkdir patch; echo x >patch/patch',
  'huge lines': python('open("docs/long.txt", "w").write("x" * 2_000_000 + "\\n" + "y" * 100_000)'),
  'marks of a conflict': `printf '<<<<<<< HEAD\\na\\n=======\\nb\\n>>>>>>> x\\n' >docs/b.txt`,
  'uncommitted changes of the image are reverted and removed': 'git checkout -q -- dirty.txt; rm notes.txt',
};

const WORK: Scripts = {
  committed: `git add -A; ${COMMIT} -m mine`,
  staged: 'git add -A; echo more >>docs/b.txt',
  'stashed and taken out': 'git -c user.name=n -c user.email=e@x stash -q; git stash pop -q',
  'on another branch, with a moved HEAD': `git checkout -q -b other; git add -A; ${COMMIT} -m mine; git branch -f main HEAD; git checkout -q --detach`,
  'rewritten history': `git add -A; ${COMMIT} --amend -m root; git checkout -q --orphan new; ${COMMIT} -m other`,
  'flags that hide edits':
    'git update-index --assume-unchanged docs/b.txt; git update-index --skip-worktree docs/dos.txt calc/__init__.py; echo more >>docs/b.txt; echo more >>docs/dos.txt',
  'a sparse checkout': [
    `git add -A; ${COMMIT} -m mine; git sparse-checkout set calc tests; true`,
    /^half\/x/,
  ],
  'another work tree': [`git worktree add -q -f wt HEAD`, /^wt/],
  'configuration, hooks and filters': `git config core.autocrlf true; git config core.fileMode false; git config core.excludesFile /testbed/docs/b.txt; git config core.hooksPath docs; git config filter.x.clean 'tr a-z A-Z'; printf '*.txt filter=x text eol=crlf\\n' >.gitattributes; echo more >>docs/b.txt`,
  'attributes as for LFS': `printf '*.bin filter=lfs diff=lfs merge=lfs -text\\n' >.gitattributes; printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 3\\n' >docs/data.bin`,
  'other encodings by attributes': `printf '*.txt working-tree-encoding=UTF-16 ident\\n' >.gitattributes; printf '$Id$\\n' >docs/id.txt`,
  'a broken index, and a lock on it': 'echo junk >.git/index; : >.git/index.lock; echo more >>docs/b.txt',
  'edits to tests and a moved test file': `mv tests/basic/tests.py tests/basic/more.py; sed -i 's/<1>/<2>/' tests/basic/more.py; echo '# own' >tests/own.py`,
  'a conftest.py and a setup.py': `printf 'import pytest\\n' >conftest.py; printf 'from setuptools import setup\\nsetup(name="calc")\\n' >setup.py`,
  'a fix of the runner': `sed -i 's/options = /options = None or /' tests/runtests.py`,
};

export const TREES = Object.entries({ ...IGNORED, ...REPOSITORIES, ...FILES, ...WORK }).map(
  ([name, given]): HonestTree => {
    const [script, litter] = typeof given === 'string' ? [given] : given;
    return { name, script, ...(litter && { litter }) };
  },
);
