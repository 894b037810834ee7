/** Tests that Harbor tasks are read from folders, and from rows with mutated `task.toml`. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Instance } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import fc from 'fast-check';
import { parse, stringify } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { type ReadOptions, readDataset } from '../read.ts';
import { toInstance } from '../row.ts';

const TOML = `schema_version = "1.4"
[task]
name = "own/sort"
keywords = ["shell"]
[agent]
timeout_sec = 60.0
user = "worker"
[verifier]
timeout_sec = 30.0
env = { LIMIT = "\${OWN_LIMIT:-6}" }
[solution.env]
ORDER = "-n"
[environment]
cpus = 0.5
memory = "256M"
storage_mb = 1024
workdir = "/data"
allow_internet = false
[environment.healthcheck]
command = "true"
retries = 2
`;
const SEPARATE = TOML.replace('env =', 'environment_mode = "separate"\nenv =');
const TASK = {
  'task.toml': TOML,
  'instruction.md': '# CANARY line\n<!-- canary of the set -->\n\n\nSort it.\n\nAll of it.\n',
  'environment/Dockerfile': 'FROM scratch\n',
  'tests/test.sh': '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
  'tests/data/in.txt': 'b\na\n',
  'solution/solve.sh': '#!/bin/bash\nsort in.txt\n',
};

function taskFolder(files: Record<string, string> = TASK, name = 'sort'): string {
  const folder = join(temporaryFolder('harbor'), name);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}
const readOne = async (folder: string, options: ReadOptions = {}) => {
  const { instances, warnings } = await readDataset(folder, options);
  return { ...instances[0], warnings };
};
const withToml = (text: string): string => taskFolder({ ...TASK, 'task.toml': text });

test('a task folder becomes an instance with its keys, files and digest', async () => {
  const folder = taskFolder();
  chmodSync(join(folder, 'tests/test.sh'), 0o755);
  const task = await readOne(folder);
  expect(task).toMatchObject({
    instance_id: 'sort',
    repo: 'own/sort',
    problem_statement: 'Sort it.\n\nAll of it.\n',
    patch: TASK['solution/solve.sh'],
    image: expect.stringMatching(/^localhost\/swefarm-harbor\/environment:[0-9a-f]{64}$/),
    environment: { workdir: '/data', activate: '' },
    warnings: [],
  });
  const { files = {}, digest, ...harbor } = { ...task.harbor };
  expect(harbor).toEqual({
    name: 'own/sort',
    build: { timeout: 600 },
    network: 'no-network',
    limits: { cpus: 0.5, memory_bytes: 256 * 1024 ** 2, disk_bytes: 1024 ** 3 },
    healthcheck: expect.objectContaining({ command: 'true', retries: 2, interval_sec: 5 }),
    agent: { timeout: 60, user: 'worker' },
    solution_env: { ORDER: '-n' },
    verifier: { timeout: 30, env: { LIMIT: '6' } },
    collect: [],
    artifacts: [{ source: '/logs/artifacts', destination: 'logs/artifacts', declared: false, exclude: [] }],
  });
  expect(files['tests/test.sh']?.executable).toBe(true);
  expect(Object.keys(files).sort()).toEqual(
    Object.keys(TASK)
      .filter((name) => name.includes('/'))
      .sort(),
  );
  const sums = Object.entries(TASK)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, text]) => `${path}\0${createHash('sha256').update(text).digest('hex')}\n`);
  expect(digest).toBe(`sha256:${createHash('sha256').update(sums.join('')).digest('hex')}`);
});

describe('a separate verifier', () => {
  const read = async (text: string, files: Record<string, string> = {}) => {
    const { image, harbor } = await readOne(taskFolder({ ...TASK, 'task.toml': text, ...files }));
    return { image, separate: harbor?.verifier.separate, harbor };
  };
  const own = '[verifier.environment]\nworkdir = "/grade"\nenv = { A = "b" }\n';

  test('without an image of its own uses the image, limits and variables of the task', async () => {
    const { image, separate } = await read(SEPARATE);
    expect(separate).toEqual({
      ...{ image, build: { timeout: 600, folder: 'environment' }, has_tests: false },
      ...{ network: 'no-network', workdir: '/data', env: {} },
      limits: { cpus: 0.5, memory_bytes: 256 * 1024 ** 2, disk_bytes: 1024 ** 3 },
    });
  });

  test('uses tests/Dockerfile, whose image contains the tests', async () => {
    const dockerfile = { 'tests/Dockerfile': 'FROM scratch\n' };
    const { image, separate } = await read(`${TOML}${own}build_timeout_sec = 9.0\n`, dockerfile);
    expect(separate).toEqual({
      ...{ image: expect.stringMatching(/^localhost\/swefarm-harbor\/environment:[0-9a-f]{64}$/) },
      ...{ build: { timeout: 9, folder: 'tests' }, has_tests: true, network: 'public' },
      ...{ limits: {}, workdir: '/grade', env: { A: 'b' } },
    });
    expect(separate?.image).not.toBe(image);
    const changed = await read(TOML + own, { ...dockerfile, 'tests/more.sh': 'true\n' });
    expect(changed.separate?.image).not.toBe(separate?.image);
    expect((await read(TOML, dockerfile)).separate).toBeUndefined();
  });

  test('prefers an image that the task names, and then needs no test script', async () => {
    const { separate } = await read(`${TOML}${own}docker_image = "own/judge:2"\n`, {
      'tests/Dockerfile': 'FROM scratch\n',
    });
    expect(separate).toMatchObject({ image: 'own/judge:2', has_tests: true });
    expect(separate?.build).toBeUndefined();
  });

  test('has a network of its own', async () => {
    const network = TOML.replace('env =', 'environment_mode = "separate"\nnetwork_mode = "public"\nenv =');
    expect((await read(network)).separate?.network).toBe('public');
    const shared = TOML.replace('env =', 'network_mode = "public"\nenv =');
    await expect(read(shared)).rejects.toThrow('verifier.network_mode: expected a task without another');
  });

  test('gets the declared artifacts after the commands that collect them', async () => {
    const { harbor } = await read(
      `artifacts = ["/a//b/", { source = "/logs/artifacts", exclude = ["*.o"] }, { source = "/c", destination = "d/" }]\n` +
        `${SEPARATE}[[verifier.collect]]\ncommand = "dump"\nuser = 7\n`,
    );
    expect(harbor?.artifacts).toEqual([
      { source: '/a/b', destination: 'a/b', exclude: [] },
      { source: '/logs/artifacts', destination: 'logs/artifacts', exclude: ['*.o'] },
      { source: '/c', destination: 'd', exclude: [] },
    ]);
    expect(harbor?.collect).toEqual([{ command: 'dump', timeout: 60, user: '7' }]);
  });
});

test('a folder of tasks is read in sorted order, without its other folders', async () => {
  const folder = dirname(taskFolder(TASK, 'b'));
  for (const name of ['c', 'a']) {
    execFileSync('cp', ['-r', join(folder, 'b'), join(folder, name)]);
  }
  mkdirSync(join(folder, 'docs'));
  const { instances } = await readDataset(folder);
  expect(instances.map(({ instance_id }) => instance_id)).toEqual(['a', 'b', 'c']);
});

test('caches and ignored files do not change the digest', async () => {
  const plain = await readOne(taskFolder());
  const cached = await readOne(taskFolder({ ...TASK, 'tests/__pycache__/x.pyc': 'x', 'tests/a.swp': 'x' }));
  const ignored = await readOne(taskFolder({ ...TASK, '.gitignore': '*.log\n', 'tests/run.log': 'x' }));
  expect([cached.harbor?.digest, ignored.harbor?.digest]).toEqual(Array(2).fill(plain.harbor?.digest));
});

test.each<[string, string, RegExp]>([
  ['no TOML', 'a = = 1', /task\.toml: expected TOML, found .*line 1/],
  [
    'a wrong type',
    TOML.replace('timeout_sec = 30.0', 'timeout_sec = "30"'),
    /verifier\.timeout_sec: expected/,
  ],
  ['a bad name', TOML.replace('own/sort', 'sort'), /task\.name: expected org\/short/],
  [
    'two sizes',
    TOML.replace('memory = ', 'memory_mb = 512\nmemory = '),
    /environment\.memory: expected the same/,
  ],
  ['a missing variable', TOML.replace(':-6', ''), /verifier\.env\.LIMIT: expected .* --task-env OWN_LIMIT/],
  ['a relative artifact', `artifacts = ["out"]\n${TOML}`, /artifacts\.0\.source: expected .*absolute path/],
  [
    'an artifact outside of its folder',
    `artifacts = [{ source = "/a/../b" }]\n${TOML}`,
    /artifacts\.0\.source: expected .*without \.\./,
  ],
  [
    'an artifact in place of the manifest',
    `artifacts = [{ source = "/a", destination = "manifest.json" }]\n${TOML}`,
    /artifacts\.0\.destination: expected .*nor manifest\.json/,
  ],
  ...['"/"', '"/."', '"//./"'].map((path): [string, string, RegExp] => [
    `the artifact ${path}`,
    `artifacts = [${path}]\n${TOML}`,
    /artifacts\.0\.source: expected an absolute path without \.\., and not \//,
  ]),
  ...['.', './', 'manifest.json/x', './manifest.json'].map((path): [string, string, RegExp] => [
    `the destination ${path}`,
    `artifacts = [{ source = "/a", destination = "${path}" }]\n${TOML}`,
    /artifacts\.0\.destination: expected a path that is neither \. nor manifest\.json/,
  ]),
  [
    'too many artifacts',
    `artifacts = [${'"/a",'.repeat(101)}]\n${TOML}`,
    /artifacts: expected at most 100 artifacts/,
  ],
  [
    'two modes of the verifier',
    `${TOML.replace('env =', 'environment_mode = "shared"\nenv =')}[verifier.environment]\ncpus = 1\n`,
    /verifier\.environment: expected no environment/,
  ],
  ['a relative folder', TOML.replace('/data', 'data'), /environment\.workdir: expected an absolute path/],
])('the error about task.toml with %s names the key', async (_, text, message) => {
  await expect(readDataset(withToml(text))).rejects.toThrow(message);
});

test.each<[string, Record<string, string>]>([
  ['steps', { 'task.toml': `${TOML}[[steps]]\nname = "one"\n` }],
  ['environment.os', { 'task.toml': TOML.replace('cpus', 'os = "windows"\ncpus') }],
  ['environment.gpus', { 'task.toml': TOML.replace('cpus', 'gpus = 1\ncpus') }],
  ['environment.tpu', { 'task.toml': TOML.replace('cpus', 'tpu = { type = "v5" }\ncpus') }],
  ['environment.network_mode', { 'task.toml': TOML.replace('cpus', 'network_mode = "allowlist"\ncpus') }],
  ['agent.network_mode', { 'task.toml': TOML.replace('user =', 'network_mode = "public"\nuser =') }],
  ['environment.mcp_servers', { 'task.toml': TOML.replace('cpus', 'mcp_servers = [{ name = "x" }]\ncpus') }],
  ['verifier.environment.gpus', { 'task.toml': `${TOML}[verifier.environment]\ngpus = 1\n` }],
  ['verifier.collect', { 'task.toml': `${TOML}[[verifier.collect]]\ncommand = "x"\nservice = "db"\n` }],
  ['artifacts', { 'task.toml': `artifacts = [{ source = "/a", service = "db" }]\n${TOML}` }],
  ['tests/docker-compose.yaml', { 'task.toml': SEPARATE, 'tests/docker-compose.yaml': 'services: {}\n' }],
  ['environment/docker-compose.yaml', { 'environment/docker-compose.yaml': 'services: {}\n' }],
])('a task with %s is refused before a run, and can be left out', async (key, changed) => {
  const folder = taskFolder({ ...TASK, ...changed });
  const error = await readDataset(folder).catch((thrown: unknown) => String(thrown));
  expect(error).toContain(`${folder}: ${key}: expected a task `);
  await expect(readDataset(folder, { skipUngradable: true })).rejects.toThrow('none of its 1 rows');
});

test('a warning names unknown keys, which have no effect', async () => {
  const { warnings, harbor } = await readOne(
    withToml(`colour = "blue"\nartifacts = [{ source = "/a", size = 1 }]\n${TOML}speed = 1\n`),
  );
  expect(warnings).toEqual([expect.stringMatching(/unknown keys: .*environment\.healthcheck\.speed.*/)]);
  for (const key of ['colour', 'artifacts.0.size']) expect(warnings[0]).toContain(key);
  expect(harbor?.verifier.timeout).toBe(30);
});

test('a task gets a variable of the caller only if the caller passes it', async () => {
  const taken = await readOne(taskFolder(), { taskEnv: { OWN_LIMIT: '9' } });
  expect(taken.harbor?.verifier.env).toEqual({ LIMIT: '9' });
});

test.each<[string, (folder: string) => void]>([
  ['a link out of it', (folder) => symlinkSync('/etc/hostname', join(folder, 'tests/host'))],
  ['a link to nothing', (folder) => symlinkSync('gone', join(folder, 'tests/gone'))],
  ['a link to a folder', (folder) => symlinkSync('data', join(folder, 'tests/other'))],
  ['a pipe', (folder) => execFileSync('sh', ['-c', 'mkfifo "$0"', join(folder, 'tests/pipe')])],
])('the error about a task with %s names the path', async (_, change) => {
  const folder = taskFolder();
  change(folder);
  await expect(readDataset(folder)).rejects.toThrow(/tests\/(?:host|gone|other|pipe): expected/);
});

test('a link to a file of the task is read as that file', async () => {
  const folder = taskFolder();
  symlinkSync('data/in.txt', join(folder, 'tests/same'));
  const { harbor } = await readOne(folder);
  expect(harbor?.files['tests/same']).toEqual(harbor?.files['tests/data/in.txt']);
});

test('a task that is too large for a row is refused, unless it names an image', async () => {
  const large = { ...TASK, 'environment/large.bin': 'x'.repeat(17 * 1024 ** 2) };
  await expect(readDataset(taskFolder(large))).rejects.toThrow(
    /environment\/large\.bin: expected files of at most/,
  );
  const named = TOML.replace('cpus', 'docker_image = "own/sort:1"\ncpus');
  const { image, harbor } = await readOne(taskFolder({ ...large, 'task.toml': named }));
  expect([image, harbor?.build]).toEqual(['own/sort:1', undefined]);
});

test('an integer above 2^53 is refused only where a key needs a number', async () => {
  const { instance_id } = await readOne(withToml(`${TOML}[metadata]\nseed = 9007199254740993\n`));
  expect(instance_id).toBe('sort');
  const large = TOML.replace('cpus = 0.5', 'cpus = 9007199254740993');
  await expect(readDataset(withToml(large))).rejects.toThrow(
    /environment\.cpus: expected number.*9007199254740993/,
  );
});

test('files that .dockerignore excludes are not part of the build', async () => {
  const one = { ...TASK, 'environment/.dockerignore': 'notes\n', 'environment/notes/a': 'a' };
  const [first, second, third] = await Promise.all(
    [one, { ...one, 'environment/notes/a': 'b' }, { ...one, 'environment/other': 'a' }].map((files) =>
      readOne(taskFolder(files)),
    ),
  );
  expect(Object.keys(first?.harbor?.files ?? {})).not.toContain('environment/notes/a');
  expect(Object.keys(first?.harbor?.files ?? {})).toContain('environment/.dockerignore');
  expect(second?.image).toBe(first?.image);
  expect(third?.image).not.toBe(first?.image);
});

/** Number of mutations of `task.toml`. `ci:full` tries 10,000. */
const RUNS = Number(process.env.SWEFARM_TEST_MUTATIONS ?? 400);

test('a mutated task.toml is read, or refused with its path and a key', () => {
  const base = parse(TOML) as Record<string, Record<string, unknown>>;
  const places = Object.entries(base).flatMap(([part, inner]) =>
    typeof inner === 'object' ? Object.keys(inner).map((key) => [part, key] as const) : [],
  );
  const value = fc.oneof(
    ...[
      fc.string(),
      fc.integer(),
      fc.double({ noNaN: true }),
      fc.boolean(),
      fc.date({ noInvalidDate: true }),
    ],
    ...[fc.array(fc.string(), { maxLength: 3 }), fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 })],
    fc.constantFrom('public', 'allowlist', 'windows', '2G', '1.5k', `\${X}`, `\${X:-y}`, 0, -1, 1e308),
  );
  const tree = fc
    .tuple(fc.constantFrom(...places), fc.oneof(fc.constant(null), fc.string()), value)
    .map(([[part, key], other, changed]) =>
      stringify({ ...base, [part]: { ...base[part], [other ?? key]: changed } }),
    );
  const cut = fc
    .tuple(fc.nat(TOML.length), fc.nat(20), fc.string({ maxLength: 8 }))
    .map(([at, length, text]) => TOML.slice(0, at) + text + TOML.slice(at + length));
  const files = Object.fromEntries(
    Object.entries(TASK).map(([name, text]) => [
      name,
      { base64: Buffer.from(text).toString('base64'), bytes: text.length, executable: false },
    ]),
  );
  const digest = `sha256:${'0'.repeat(64)}`;
  const isReadOrRefused = (text: string): void => {
    const own = { base64: Buffer.from(text).toString('base64'), bytes: text.length, executable: false };
    const task = { digest, files: { ...files, 'task.toml': own } };
    const read = toInstance('tasks/sort', { instance_id: 'sort', harbor_task: task });
    if ('instance' in read) return void Instance.parse(JSON.parse(JSON.stringify(read.instance)));
    expect(read.problems).not.toEqual([]);
    for (const { where, field } of read.problems)
      expect([where, Boolean(field)]).toEqual(['tasks/sort', true]);
  };
  fc.assert(fc.property(fc.oneof(tree, cut), isReadOrRefused), { numRuns: RUNS });
}, 600_000);
