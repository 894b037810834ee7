/** Requirements of the patch in every runtime: the tree at start plus the patch is the tree at the end. */
import { isUtf8 } from 'node:buffer';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Container } from '../src/runtime.ts';
import { pruneObjects, type Snapshot, takePatch } from '../src/snapshot.ts';
import { type ContractOptions, NEVER, printed, type Subject, sh, snapshotOf, start } from './subject.ts';

const IDENTITY = 'export GIT_CONFIG_GLOBAL=/dev/null; gitc() { git -c user.name=n -c user.email=e@x "$@"; };';
/** A repository with a base commit, a builder's commit on top, and uncommitted edits. */
export const REPOSITORY = `${IDENTITY}
git init -q -b main .
mkdir -p pkg bin 'odd dir'
printf 'one\\ntwo\\nthree\\n' > pkg/a.py
printf 'keep\\n' > pkg/b.py
printf 'gone\\n' > 'odd dir/gone é.txt'
printf '#!/bin/sh\\n' > bin/tool
printf 'caf\\351\\nline\\n' > pkg/latin1.txt
printf '\\000\\001\\002binary' > data.bin
printf 'crlf\\r\\nlines\\r\\n' > dos.txt
printf '*.log\\nignored/\\n' > .gitignore
ln -s pkg/a.py link
git add -A; gitc commit -qm base
printf 'builder\\n' >> pkg/b.py; gitc commit -qam "builder's commit"
printf 'dirty at start\\n' >> pkg/b.py
printf 'untracked at start\\n' > notes.txt`;

export function patchContract(subject: () => Subject, options: ContractOptions): void {
  let container: Container;
  let snapshot: Snapshot;
  beforeEach(async () => {
    container = await start(subject());
    await sh(container, REPOSITORY);
    snapshot = await snapshotOf(container);
  });
  afterEach(async () => {
    await container[Symbol.asyncDispose]();
  });

  /** Runs a script as the agent, takes the patch, applies it to a fresh copy, compares both trees. */
  async function roundTrip(script: string, litter = ''): Promise<string> {
    await sh(container, `${IDENTITY}\n${script}`);
    const { patch, tooLarge } = await takePatch(container, snapshot, NEVER);
    expect(tooLarge).toBe(false);
    expect(isUtf8(patch) && !patch.includes(0)).toBe(true);
    if (litter) await sh(container, litter);
    const listing = `find . -path ./.git -prune -o ! -type d ! -name .git -printf '%P %l ' -exec sh -c 'if [ -L "$1" ]; then echo; else [ -x "$1" ] && printf "x "; sha256sum < "$1"; fi' sh {} ';' | sort`;
    const after = await printed(container, listing);
    await using clean = await start(subject());
    await sh(clean, REPOSITORY);
    if (patch.length > 0) {
      await clean.putFiles([{ path: `${clean.workdir}/.git/p.diff`, content: patch }], NEVER);
      await sh(clean, 'git apply --verbose .git/p.diff; rm .git/p.diff');
    }
    expect(await printed(clean, listing)).toBe(after);
    return patch.toString();
  }

  const patchOf = async (taken: Snapshot): Promise<string> =>
    (await takePatch(container, taken, NEVER)).patch.toString();
  const headsOf = async (taken: Snapshot) => (await patchOf(taken)).match(/^diff --git.*/gm);

  it('is empty without changes', async () => {
    expect(await roundTrip('true')).toBe('');
  });

  it('has edits, new, deleted and moved files, modes, links and unusual names', async () => {
    const patch = await roundTrip(`
      sed -i s/two/2/ pkg/a.py
      printf 'no newline at end' > 'new file ü.py'
      rm 'odd dir/gone é.txt'
      mv dos.txt moved.txt
      chmod +x pkg/b.py; chmod -x bin/tool
      ln -sf pkg/b.py link
      : > empty.py
      printf 'x' > 'a"b\\c*[d]?.txt'`);
    expect(patch).toContain('+2\n');
    expect(patch).not.toContain('rename from');
  });
  if (options.whole === false) return;

  it("omits changes before the start: a builder's commit, dirty edits, untracked files", async () => {
    const patch = await roundTrip('printf more >> pkg/a.py');
    expect(patch).toContain('pkg/a.py');
    for (const absent of ['builder', 'dirty', 'notes']) expect(patch).not.toContain(absent);
  });

  it('has binary files, and text that is not UTF-8 as binary', async () => {
    const patch = await roundTrip(`
      printf 'caf\\351 changed\\n' > pkg/latin1.txt
      printf '\\000new\\377' > data.bin
      head -c 30000 /dev/urandom > random.bin
      printf 'plain\\n' > plain.txt
      printf '\\376\\n' > 'odd "[x]*\\\\ é.txt'`);
    expect(patch).toContain('GIT binary patch');
    expect(patch).toContain('+plain\n');
  });

  it('has changes that were committed, staged, stashed, reset, or put on another branch', async () => {
    expect(await roundTrip('printf c > c.py; git add -A; gitc commit -qm mine')).toContain('c.py');
    expect(
      await roundTrip('git checkout -q -b other; printf d > d.py; git add d.py; git reset -q'),
    ).toContain('d.py');
    expect(await roundTrip('printf e > e.py; git add -A; gitc stash -q; gitc stash pop -q')).toContain(
      'e.py',
    );
  });

  it('ignores configuration, filters, attributes, hooks and flags of the agent', async () => {
    const patch = await roundTrip(`
      git config filter.evil.clean 'echo filtered'; git config filter.evil.required true
      git config core.autocrlf true; git config core.fileMode false; git config diff.external false
      git config core.fsmonitor 'sh -c "touch fsmonitor-ran"'; git config core.excludesFile "$PWD/excl"; echo '*.py' > .git/excl
      git config core.hooksPath "$PWD/hooks"; git config core.quotePath false; git config diff.noprefix true
      mkdir -p .git/info; printf '*.py' >> .git/info/exclude
      printf '* text=auto eol=crlf filter=evil ident working-tree-encoding=UTF-16 -diff\\n' > .gitattributes
      git update-index --assume-unchanged pkg/a.py; git update-index --skip-worktree pkg/b.py
      sed -i s/two/2/ pkg/a.py; printf 'last\\n' >> pkg/b.py; printf '$Id$\\r\\n' > new.py`);
    expect(patch).toContain('+2\n');
    expect(patch).toContain('+last\n');
    expect(patch).not.toContain('filtered');
  });

  it('omits build outputs and ignored files', async () => {
    const script = `mkdir -p pkg/__pycache__ x.egg-info node_modules/m .pytest_cache build/lib ignored
      for f in pkg/__pycache__/a.pyc x.egg-info/P node_modules/m/i.js .pytest_cache/c build/lib/a.py ignored/x run.log; do echo x > $f; done
      printf 'real\\n' > real.py`;
    const patch = await roundTrip(
      script,
      'rm -rf pkg/__pycache__ x.egg-info node_modules .pytest_cache build ignored run.log',
    );
    expect(patch.match(/^diff --git/gm)).toHaveLength(1);
  });

  it('has changes of equal size, and files edited within the same second', async () => {
    expect(await roundTrip("sed -i 's/two/owt/' pkg/a.py")).toContain('+owt');
  });

  it('omits a repository that the agent cloned into the tree', async () => {
    await sh(
      container,
      `${IDENTITY} mkdir sub empty; git -C empty init -q; cd sub; git init -q; echo x > x; git add x; gitc commit -qm x; cd ..; echo y > y.py`,
    );
    expect(await headsOf(snapshot)).toEqual(['diff --git a/y.py b/y.py']);
  });

  it('is too large over 10 MB, without reading files far over the limit', async () => {
    await sh(container, 'head -c 12000000 /dev/urandom > big.bin');
    const tooLarge = { patch: Buffer.alloc(0), tooLarge: true };
    expect(await takePatch(container, snapshot, NEVER)).toEqual(tooLarge);
    await sh(container, 'rm big.bin; truncate -s 50G huge.bin');
    expect(await takePatch(container, snapshot, NEVER)).toEqual(tooLarge);
  });

  it('is taken after the agent broke index, config and HEAD', async () => {
    await sh(
      container,
      'echo junk > .git/index; echo junk > .git/HEAD; echo "[junk" > .git/config; echo z > z.py',
    );
    expect(await headsOf(snapshot)).toEqual(['diff --git a/z.py b/z.py']);
  });

  it('fails with no_worktree without a work tree', async () => {
    await sh(container, 'rm -rf .git');
    await expect(snapshotOf(container)).rejects.toMatchObject({ failureClass: 'no_worktree' });
  });

  it('history is pruned of all but HEAD and the objects that it reaches', async () => {
    await sh(
      container,
      `${IDENTITY}
      git checkout -q -- .; git tag before; gitc commit -q --allow-empty -m future; gitc tag -m x after; git branch future; git update-ref refs/remotes/origin/main HEAD
      git remote add origin https://example.invalid/x; git reset -q --hard HEAD~1; git branch old HEAD~1`,
    );
    const head = await printed(container, 'git rev-parse HEAD');
    await snapshotOf(container);
    expect(await printed(container, 'git rev-parse HEAD')).toBe(head);
    const list = 'git for-each-ref --format="%(refname)"; git remote; git reflog; git log --all --format=%s';
    const refs = await printed(container, list);
    expect(refs.trim().split('\n').sort()).toEqual([
      'base',
      "builder's commit",
      'refs/heads/main',
      'refs/heads/old',
      'refs/tags/before',
    ]);
    await sh(container, 'git status && git fsck --connectivity-only');
  });

  it('unreachable objects are removed; those of HEAD, index and snapshot stay', async () => {
    await sh(
      container,
      `${IDENTITY}
      git checkout -q -- .; git branch -q start; cp -r .git ../lender.git
      printf 'the fix, packed\n' > fix.py; git add fix.py; gitc commit -qm future; git tag future; gitc tag -m x annotated
      git tag tree HEAD^{tree}; git repack -q -a -d; touch .git/objects/pack/$(basename .git/objects/pack/*.pack .pack).keep
      printf 'the fix, stashed\n' > fix.py; gitc stash -q; printf 'the fix, loose\n' | git hash-object -w --stdin
      git update-ref refs/replace/$(git rev-parse HEAD) start; git update-ref refs/remotes/origin/main HEAD; git remote add origin ../x
      printf 'the fix, borrowed\\n' | git --git-dir=../lender.git hash-object -w --stdin; gitc --git-dir=../lender.git commit-tree -m lent HEAD^{tree}
      printf '%s\n' "$(cd ..; pwd)/lender.git/objects" > .git/objects/info/alternates
      git -c core.useReplaceRefs=false reset -q --hard start; git checkout -q main; git -c core.useReplaceRefs=false reset -q --hard start; git branch -q -D start
      printf 'staged\n' > staged.py; git add staged.py; printf 'the fix, packed\n' > now.py`,
    );
    const taken = await snapshotOf(container);
    const head = await printed(container, 'git rev-parse HEAD');
    expect(await pruneObjects(container, taken, NEVER)).toBe('pruned');
    const left = await printed(
      container,
      `git rev-parse HEAD; test ! -e .git/objects/info/alternates
      for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o; done | grep -a -e 'the fix' -e future -e lent || true`,
    );
    // The tree at start contains one of the fixes: this blob is visible, and the snapshot needs it.
    expect(left).toBe(`${head}the fix, packed\n`);
    await sh(
      container,
      'git fsck --full --strict 2>&1 | { ! grep -v -e dangling -e notice; }; git status; git log',
    );
    await sh(container, 'printf more >> now.py; rm staged.py');
    const patch = await patchOf(taken);
    for (const part of ['-staged\n', '+more', ' the fix, packed\n']) expect(patch).toContain(part);
  });

  it('a repository with only reachable objects is clean', async () => {
    await sh(
      container,
      'git checkout -q -- .; rm notes.txt; git reflog expire --expire=now --all; git prune --expire=now',
    );
    const taken = await snapshotOf(container);
    expect(await pruneObjects(container, taken, NEVER)).toBe('clean');
  });
}
