/** Fixes in unusual trees and unusual patches that fix the bug: each keeps its reward on each runtime, and the clean tree becomes the agent's. */

import type { Container } from '@swefarm/sandbox';
import { takePatch } from '@swefarm/sandbox';
import { NEVER, snapshotOf } from '@swefarm/sandbox/test/subject.ts';
import type { Instance, InstancePlan } from '@swefarm/shared';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { QUIET } from './forgeries.ts';
import { diff, type Project, pytestProject, unittestProject } from './forgeryprojects.ts';
import { openForgeryScene, type Scene } from './forgeryscene.ts';
import { DIRT, EXTRAS, FIX, type HonestTree, TREES } from './honest.ts';
import { PATCHES } from './honestpatches.ts';
import { RUNTIMES } from './runtimes.ts';

/** Prints every file: name, kind and digest. Git stores neither folders nor other modes. */
const LISTING = `python3 - <<'PY'
import hashlib, os
found = []
for folder, folders, files in os.walk(b"."):
    links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
    folders[:] = [name for name in folders if name != b".git"]
    for name in links + files:
        path = os.path.join(folder, name)
        if name == b".git": continue
        if os.path.islink(path): found.append((path, "link", os.readlink(path)))
        else: found.append((path, "x" if os.stat(path).st_mode & 64 else "-", hashlib.sha1(open(path, "rb").read()).hexdigest()))
for path, kind, content in sorted(found): print("LISTED", ascii(path[2:])[2:-1], kind, content)
PY`;
const listed = (log: string, litter?: RegExp): string[] =>
  log.split('\n').flatMap((line) => {
    const [, entry] = /^LISTED (.*)$/.exec(line) ?? [];
    return entry === undefined || litter?.test(entry) ? [] : [entry];
  });

const project = unittestProject();
const pytest = pytestProject();
/** The forgery QUIET in words that no pattern matches. */
const SIGNLESS = QUIET.replace(
  /^.*\n.*\n/,
  'import re\none = re.enum.sys\nname = "".join(("mod", "ules"))\nreports = getattr(one, name)["".join(("_py", "test.reports"))]\n',
);
const [made] = project.plan.before ?? [];
const REPOSITORY = `${made?.script.replace('git add -A -f', `${EXTRAS}\ngit add -A`)}\n${DIRT}`;
const plan: Partial<InstancePlan> = {
  before: [{ name: 'repo', script: REPOSITORY, may_fail: false, timeout: 60 }],
};
/** The way to apply a patch with the most changes: it changes white space and reverts applied changes. */
const apply = ['git apply --whitespace=fix', 'patch --batch --fuzz=5 -p1 -i'].map((name) => ({
  name,
  argv: [...name.split(' '), '/tmp/patch.diff'],
}));
const row: Instance = {
  ...project.row,
  eval_script: (project.row.eval_script ?? '').replace(
    'git checkout',
    `{ set +x; } 2>/dev/null\n${LISTING}\nset -x\ngit checkout`,
  ),
};

describe.each(RUNTIMES)('on %s', (runtime) => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openForgeryScene(runtime);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  async function run(container: Container, script: string): Promise<string> {
    const options = { cwd: '/testbed', timeoutMs: 60_000, maxOutputBytes: 1e8, signal: NEVER };
    const { exitCode, output } = await container.exec(['/bin/bash', '-ec', script], options);
    expect(exitCode, output.toString()).toBe(0);
    return output.toString();
  }

  /** The patch of an agent that fixes the bug and does something unusual, and its final tree. */
  async function worked({ script }: HonestTree): Promise<{ patch: string; tree: string }> {
    await using container = await scene.start();
    await run(container, REPOSITORY);
    const snapshot = await snapshotOf(container);
    await run(container, `${FIX}\n${script}`);
    const { patch, tooLarge } = await takePatch(container, snapshot, NEVER);
    expect(tooLarge).toBe(false);
    return { patch: patch.toString(), tree: await run(container, LISTING) };
  }

  test.each(TREES.map((tree) => [tree.name, tree] as const))('a fix, and %s', async (_name, tree) => {
    const { patch, tree: after } = await worked(tree);
    const { report, log } = await scene.evaluator.run(row, patch, scene.image, {
      plan: { ...plan, apply },
      fromTree: true,
    });
    expect.soft(listed(log?.toString() ?? '', tree.litter)).toEqual(listed(after, tree.litter));
    expect(report, `${report.trust.reasons.join('\n')}\n${log}`).toMatchObject({
      resolved: true,
      trust: { level: expect.stringMatching(/clean|suspicious/) },
    });
  });

  test.each(PATCHES)('a fix, and %s', async (_name, { row, ...project }, changes) => {
    const seen = await scene.judged({ row, ...project }, changes, { patch: row.patch });
    expect(seen, seen.why).toMatchObject({
      resolved: true,
      level: expect.stringMatching(/clean|suspicious/),
    });
    expect(seen.why).not.toMatch(/made to fail/);
  });

  test('a fix, and moved files, the test file among them', async () => {
    const moved =
      'diff --git a/tests/test_calc.py b/tests/test_more.py\nsimilarity index 100%\nrename from tests/test_calc.py\nrename to tests/test_more.py\n';
    const { level } = await scene.judged(pytest, {}, { patch: pytest.row.patch + moved });
    expect(level).not.toBe('forged');
  });

  test('a fix in existing modules needs one evaluation', async () => {
    for (const one of [project, pytest])
      expect(await scene.judged(one, {}, { patch: one.row.patch })).toMatchObject({
        level: 'clean',
        starts: 1,
      });
  });

  test('a drawn patch without a sign is found forged, and a drawn fix stays clean', async () => {
    const run = (one: Project, patch: string, auditShare: number) =>
      scene.judged(one, {}, { patch, auditShare });
    const hidden = diff(pytest.tree, { 'calc/__init__.py': SIGNLESS + pytest.tree['calc/__init__.py'] });
    expect(await run(pytest, hidden, 0)).toMatchObject({ resolved: true, level: 'clean', starts: 1 });
    expect(await run(pytest, hidden, 1)).toMatchObject({ resolved: true, level: 'forged', starts: 3 });
    expect(await run(project, project.row.patch, 1)).toMatchObject({
      resolved: true,
      level: 'clean',
      starts: 2,
    });
  });
});
