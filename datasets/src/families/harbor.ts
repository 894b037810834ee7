/** Reads the rows of Harbor tasks. A row contains the files of the task's folder (`harbor/folder.ts`). docs/harbor.md has the rules. */
import { HARBOR_TASKS } from '@swefarm/shared';
import { parse, TomlError } from 'smol-toml';
import { asObject, type FieldReader, type Row } from '../fields/fields.ts';
import { MOST_TASK_BYTES, TASK_COLUMN, type TaskRow } from '../harbor/folder.ts';
import { builtFiles, imageOf, type TaskImage } from '../harbor/image.ts';
import { limitsOf, numbered } from '../harbor/limits.ts';
import { filesBelow, type TaskFiles, textOf } from '../harbor/taskfiles.ts';
import { isSeparate, networkOf, TaskToml } from '../harbor/tasktoml.ts';
import { unprovidedIn } from '../harbor/unprovided.ts';
import { resolved } from '../harbor/variables.ts';
import { artifactsOf, bringsTests, collectOf, userOf, verifierOf } from '../harbor/verifier.ts';
import { type Family, type InstanceDraft, NOTHING, type RowContext } from './family.ts';

const MIB = 1024 ** 2;
const TESTS = 'tests/test.sh';
const SOLUTION = 'solution/solve.sh';
const ENVIRONMENT = 'environment/';
const COMPOSE = /^(environment|tests)\/(?:docker-)?compose\.ya?ml$/;
const SHOWN_KEYS = 20;

export const harbor: Family = {
  name: 'harbor',
  columns: [TASK_COLUMN],
  fits: (row) => asObject(row[TASK_COLUMN]) !== null,
  names: (row) => ({ id: row.instance_id, repo: row.repo ?? row.instance_id }),
  read: readTask,
};

function readTask(read: FieldReader, context: RowContext): InstanceDraft {
  const row = asObject(read.row[TASK_COLUMN]) as TaskRow | null;
  const files = asObject(row?.files) as TaskFiles | null;
  if (!row || !files) {
    read.complain(TASK_COLUMN, 'the content of a task', read.row[TASK_COLUMN], 'read the folder again');
    return NOTHING;
  }
  const toml = readToml(read, textOf(files['task.toml']));
  const instruction = textOf(files['instruction.md']);
  const testScript = files[TESTS];
  if (toml === null) return NOTHING;
  refuseUnprovided(read, toml, files);
  if (read.problems.length > 0) return NOTHING;
  if (instruction === null) read.complain('instruction.md', 'a text', undefined, 'add the file');
  if (!testScript && !bringsTests(toml, files)) read.complain(TESTS, 'a script', undefined, 'add the file');
  warnOfUnused(read, files);
  const image = imageOf(read, 'environment', toml.environment, files, 'environment');
  const instanceId = read.id();
  const name = toml.task?.name ?? instanceId;
  const { workdir } = toml.environment;
  const { taskEnv } = context;
  return {
    instance_id: instanceId,
    repo: name,
    base_commit: '',
    problem_statement: withoutCanary(instruction ?? ''),
    patch: textOf(files[SOLUTION]) ?? '',
    FAIL_TO_PASS: [],
    PASS_TO_PASS: [],
    family: 'harbor',
    image: image.name,
    needs: HARBOR_TASKS,
    environment: {
      activate: '',
      env: resolved(read, 'environment.env', toml.environment.env, taskEnv),
      ...(workdir === undefined ? {} : { workdir }),
    },
    harbor: {
      name,
      digest: row.digest,
      files: neededFiles(read, files, image),
      ...(image.build ? { build: { timeout: toml.environment.build_timeout_sec } } : {}),
      network: networkOf(toml.environment) === 'no-network' ? 'no-network' : 'public',
      limits: limitsOf(read, 'environment', toml.environment),
      ...(toml.environment.healthcheck ? { healthcheck: toml.environment.healthcheck } : {}),
      agent: { ...numbered('timeout', toml.agent.timeout_sec), ...userOf(toml.agent.user) },
      solution_env: resolved(read, 'solution.env', toml.solution.env, taskEnv),
      verifier: verifierOf(read, toml, { files, image, taskEnv }),
      collect: collectOf(toml),
      artifacts: artifactsOf(toml),
      ...(context.rewardKey === undefined ? {} : { reward_key: context.rewardKey }),
    } satisfies HarborDraft,
  };
}

/** Refuses a task that requests a feature that the farm does not provide. */
function refuseUnprovided(read: FieldReader, toml: TaskToml, files: TaskFiles): void {
  for (const { key, reason } of unprovidedIn(toml))
    read.refuse(`tasks with ${reason}`, key, `a task without ${reason}`, `a task with ${reason}`);
  const compose = Object.keys(files).find((name) => {
    const [, folder] = COMPOSE.exec(name) ?? [];
    return folder === 'environment' || (folder === 'tests' && isSeparate(toml));
  });
  if (compose !== undefined)
    read.refuse('tasks with a Compose file', compose, 'a task of one container', 'a Compose file');
}

type HarborDraft = NonNullable<InstanceDraft['harbor']>;

/** Returns the known keys of `task.toml` and warns of unknown keys. Returns null and records the problems if the file is invalid. */
function readToml(read: FieldReader, text: string | null): TaskToml | null {
  if (text === null) {
    read.complain('task.toml', 'TOML', undefined, 'add the file');
    return null;
  }
  let tree: Row;
  try {
    // `metadata` may contain integers that a JavaScript number cannot represent.
    tree = parse(text, { integersAsBigInt: 'asNeeded' });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const why = (error.message.split('\n')[0] ?? '').slice(0, 200);
    read.complain(
      'task.toml',
      'TOML',
      `${why} (line ${error.line}, column ${error.column})`,
      'correct the file',
    );
    return null;
  }
  const unknown = unknownKeys(tree);
  if (unknown.length > 0) read.warn(`task.toml: unknown keys: ${unknown.slice(0, SHOWN_KEYS).join(', ')}`);
  const parsed = TaskToml.safeParse(tree);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const value = issue.path.reduce<unknown>((at, key) => (at as Row | undefined)?.[String(key)], tree);
    const expected = issue.message.replace(/^(?:Invalid input: )?expected /, '');
    read.complain(issue.path.join('.'), expected, value, 'correct task.toml');
  }
  return null;
}

/** Removes the keys that the schema does not know from `tree`, and returns their paths. */
function unknownKeys(tree: Row): string[] {
  const issues = TaskToml.safeParse(tree).error?.issues ?? [];
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [];
    const at = issue.path.reduce<Row>((inner, key) => inner[String(key)] as Row, tree);
    return issue.keys.map((key) => {
      delete at[key];
      return [...issue.path, key].join('.');
    });
  });
}

/** Warns of parts of a task that Harbor uses and the farm ignores. These parts do not change the verdict. */
function warnOfUnused(read: FieldReader, files: TaskFiles): void {
  if (files['trajectory.json'])
    read.warn('the farm does not load trajectory.json: the agent starts without earlier turns');
  for (const folder of ['tests', 'solution'])
    if (files[`${folder}/.harborignore`])
      read.warn(`the farm does not read ${folder}/.harborignore: it copies all files`);
}

/** Returns the files that a worker needs. Records a problem for each file that is too large for a row. */
function neededFiles(
  read: FieldReader,
  files: TaskFiles,
  { build, needsFiles }: TaskImage,
): HarborDraft['files'] {
  const copied = needsFiles ? filesBelow(files, ENVIRONMENT) : [];
  const environment = build ? builtFiles(files, 'environment') : copied;
  const needed: HarborDraft['files'] = {};
  for (const [name, { base64, bytes, executable }] of [
    ...filesBelow(files, 'tests/', 'solution/'),
    ...environment,
  ]) {
    if (base64 === undefined)
      read.complain(
        name,
        `files of at most ${MOST_TASK_BYTES / MIB} MiB together`,
        bytes,
        'build the image yourself and name it with environment.docker_image',
      );
    else needed[name] = { base64, executable };
  }
  return needed;
}

/** Removes leading comments and headings with the word "canary", and then leading empty lines, as Harbor does. */
export function withoutCanary(text: string): string {
  const lines = text.split('\n');
  let from = 0;
  while (/^\s*(?:<!--.*canary.*-->|#.*canary.*)\s*$/i.test(lines[from] ?? '')) from += 1;
  while (from < lines.length && lines[from]?.trim() === '') from += 1;
  return lines.slice(from).join('\n');
}
