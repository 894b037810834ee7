import { expect, test } from 'vitest';
import { row } from '../test/rows.ts';
import { toInstance } from './row.ts';

const instance = (over: Record<string, unknown>, family?: 'swebench' | 'swegym') => {
  const read = toInstance('line 1', row(over), { family });
  if ('problems' in read)
    throw new Error(read.problems.map((one) => `${one.field}: ${one.found}`).join('; '));
  return read.instance;
};
const problems = (over: Record<string, unknown>) => {
  const read = toInstance('line 1', row(over));
  return 'problems' in read ? read.problems.map((one) => one.field) : [];
};

test.each([
  [{}, 'swebench', 'swebench/sweb.eval.x86_64.pallets_1776_flask-1:latest'],
  [
    { repo: 'Project-MONAI/MONAI', instance_id: 'Project-MONAI__MONAI-10', version: '1.2' },
    'swegym',
    'xingyaoww/sweb.eval.x86_64.project-monai_s_monai-10:latest',
  ],
  [
    { repo: 'redis/redis', instance_id: 'redis__redis-9733', version: '6.2' },
    'swebench',
    'swebench/sweb.eval.x86_64.redis_1776_redis-9733:latest',
  ],
  [{ image: 'ours/flask:5' }, 'swebench', 'ours/flask:5'],
  [{ image_name: 'ours/flask' }, 'swebench', 'ours/flask:latest'],
  [{ repo: 'a/b', docker_image: 'host:5000/a/b' }, 'custom', 'host:5000/a/b:latest'],
  [{ repo: 'a/b', image: 'host+dir:/trees/a' }, 'custom', 'host+dir:/trees/a'],
  [{ repo: 'a/b', image: 'sif:/shared/a.sif' }, 'custom', 'sif:/shared/a.sif'],
  [{ repo: 'a/b', image: '/shared/a.sif' }, 'custom', '/shared/a.sif'],
  [{ repo: 'a/b', image: 'x@sha256:00' }, 'custom', 'x@sha256:00'],
  [
    {
      repo: 'swesmith/mewwts__addict.75284f95',
      image_name: 'jyangballin/swesmith.x86_64.mewwts_1776_addict.75284f95',
      base_commit: undefined,
      version: undefined,
    },
    'swesmith',
    'swebench/swesmith.x86_64.mewwts_1776_addict.75284f95:latest',
  ],
])('family and image of %j', (over, family, image) => {
  expect(instance(over)).toMatchObject({ family, image });
});

test.each([
  ['getmoto/moto', '5.0'],
  ['pandas-dev/pandas', '2.2'],
  ['python/mypy', '1.10'],
  ['Project-MONAI/MONAI', '0.105'],
  ['dask/dask', '2024.1'],
  ['iterative/dvc', '3.0'],
  ['conan-io/conan', '2.0'],
  ['pydantic/pydantic', '2.04'],
  ['facebookresearch/hydra', '1.3'],
  ['bokeh/bokeh', '0.1181316818'],
  ['modin-project/modin', '0.22'],
])("a row of %s is SWE-Gym's, at a version that its harness knows", (repo, version) => {
  const id = `${repo.replace('/', '__')}-12`;
  expect(instance({ repo, version, instance_id: id })).toMatchObject({
    family: 'swegym',
    repo,
    version,
    image: `xingyaoww/sweb.eval.x86_64.${id.toLowerCase().replace('__', '_s_')}:latest`,
  });
  const read = toInstance('line 1', row({ repo, version: '99.1', instance_id: id }));
  expect(read).toMatchObject({
    problems: [{ field: 'version', ungradable: "the version is not in the table of SWE-Gym's harness" }],
  });
  expect(problems({ repo, version: '99.1', instance_id: id, test_cmd: 'pytest -rA' })).toEqual([]);
});

test('an issue names its own pictures only, and a row whose tests need pictures is refused', () => {
  const of = (test_patch: string[]) => ({
    image_assets: JSON.stringify({
      problem_statement: ['https://x.example/issue.png'],
      patch: [{ path: 'a.png', url: 'https://x.example/fix.png' }],
      test_patch,
    }),
  });
  const { problem_statement } = instance(of([]));
  expect(problem_statement).toBe('It breaks.\n\nPictures of the issue:\nhttps://x.example/issue.png\n');
  expect(problems(of(['b.png']))).toEqual(['image_assets.test_patch']);
  // swebench 5.0.2, whose rows have a script, adds the pictures of the fix to every evaluation.
  const latest = { eval_script: 'npm test', log_parser: 'jest', eval_type: 'pass_and_fail', image: 'x/y:1' };
  expect(toInstance('line 1', row({ ...of([]), ...latest }))).toMatchObject({
    problems: [{ field: 'image_assets.patch', ungradable: expect.stringContaining('pictures of the fix') }],
  });
  expect(problems({ image_assets: '[' })).toEqual(['image_assets']);
});

test("the pictures of the issue come from the operator's folder; those of the fix are absent", () => {
  const shown = ['https://x.example/a.png', 'https://x.example/b.png'];
  const image_assets = {
    problem_statement: shown,
    patch: [{ path: 'a.png', url: 'https://x.example/fix.png' }],
    test_patch: [],
  };
  const addresses: string[] = [];
  const picturesOf = (bytes: number) => {
    const file = { media_type: 'image/png', sha256: '', bytes, data: 'QUJD' } as const;
    const find = (address: string) => {
      addresses.push(address);
      return { address, file };
    };
    const read = toInstance('line 1', row({ image_assets }), { pictures: { find } });
    return 'instance' in read ? read.instance.pictures : [];
  };
  expect(picturesOf(3)?.map(({ file }) => file?.bytes)).toEqual([3, 3]);
  expect(addresses).toEqual(shown);
  expect(instance({ image_assets }).pictures).toEqual(shown.map((address) => ({ address })));
  const many = { problem_statement: Array(21).fill('https://x.example/a.png') };
  expect(problems({ image_assets: many })).toEqual(['image_assets.problem_statement']);
});

test('--family gives images to unknown repositories', () => {
  expect(instance({ repo: 'a/b', instance_id: 'a__b-1' }, 'swebench').image).toBe(
    'swebench/sweb.eval.x86_64.a_1776_b-1:latest',
  );
  expect(problems({ repo: 'a/b' })).toEqual(['image']);
});

test('a row may define its evaluation at its top level or under environment', () => {
  const environment = {
    test_cmd: 'pytest -rA',
    log_parser: 'pytest',
    install: 'pip install -e .',
    pip: ['x==1'],
  };
  expect(instance({ environment, log_parser: 'pytest_v2', eval_type: 'FAIL_ONLY' })).toMatchObject({
    test_cmd: 'pytest -rA',
    log_parser: 'pytest_v2',
    install: 'pip install -e .',
    eval_type: 'fail_only',
    needs_egress: false,
  });
  expect(instance({ test_cmd: ['a', 'b'], needs_egress: true })).toMatchObject({
    test_cmd: ['a', 'b'],
    needs_egress: true,
  });
});

test('gold of a SWE-smith row reverts its patch', () => {
  const patch = '--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-good\n+bad\n';
  const smith = { repo: 'swesmith/mewwts__addict.75284f95', patch };
  expect(instance(smith).patch).toBe('--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-bad\n+good\n');
});

test.each([
  [{ instance_id: undefined }, ['instance_id']],
  [{ instance_id: 'a/b' }, ['instance_id']],
  [{ repo: 3 }, ['repo']],
  [{ base_commit: '' }, ['base_commit']],
  [{ problem_statement: undefined }, ['problem_statement']],
  [{ version: 0.6 }, ['version']],
  [{ patch: ['x'] }, ['patch']],
  [{ FAIL_TO_PASS: "['a']" }, ['FAIL_TO_PASS']],
  [{ FAIL_TO_PASS: ['a', 1] }, ['FAIL_TO_PASS']],
  [{ FAIL_TO_PASS: '{}', PASS_TO_PASS: null }, ['FAIL_TO_PASS', 'PASS_TO_PASS']],
  [{ FAIL_TO_PASS: [], PASS_TO_PASS: [] }, ['FAIL_TO_PASS']],
  [{ image: 'two words' }, ['image']],
  [{ test_cmd: 1 }, ['test_cmd']],
  [{ eval_type: 'maybe' }, ['eval_type']],
  [{ needs_egress: 'yes' }, ['needs_egress']],
])('%j is a bad row', (over, fields) => {
  expect(problems(over)).toEqual(fields);
});
