/** Makes the files of a task of Harbor 0.25 from an instance and its plan. */
import { readFileSync } from 'node:fs';
import {
  BUILD_OUTPUTS,
  type Instance,
  type InstancePlan,
  jsonText,
  SandboxConfig,
  type Step,
  shellQuoted,
} from '@swefarm/shared';

const asset = (name: string): string => readFileSync(new URL(`./task/${name}`, import.meta.url), 'utf8');
const TEST = asset('test.sh');
const GRADE = asset('grade.py');
const READERS = asset('readers.py');
const PREPARE = asset('prepare.sh');
const COLLECT = asset('collect.sh');

/** Git folder outside the repository that records the start tree. collect.sh takes the patch against this tree. */
const START = '/var/lib/swefarm/start.git';
const ACTIVATE = '/etc/swefarm-activate.sh';
const PREPARED = '/opt/swefarm-prepare';
const MIB = 1024 ** 2;
/** Time limit of the image build. */
const BUILD_SECONDS = 1800;
/** Time for container start and grading. */
const MARGIN_SECONDS = 600;

export type TaskOptions = {
  network: 'none' | 'public';
  /** Time limit of the agent in seconds. */
  agentSeconds: number;
  /** Time limit of the tests in seconds. If the limit of the plan is smaller, the limit of the plan applies. */
  testSeconds: number;
};

const command = (argv: readonly string[]): string => argv.map(shellQuoted).join(' ');

/** Returns the text of each file by its path in the folder of the task. */
export function taskFiles(
  instance: Instance,
  plan: InstancePlan,
  options: TaskOptions,
): Record<string, string> {
  const run = SandboxConfig.parse({});
  const { workdir = run.workdir, activate = run.activate } = instance.environment ?? {};
  const limit = Math.min(plan.timeout ?? options.testSeconds, options.testSeconds);
  const task = { instance, plan, workdir, activate, limit };
  return {
    'task.toml': taskToml(task, options),
    'instruction.md': instruction(instance, workdir),
    ...inFolder('environment', environmentFiles(task)),
    ...inFolder('tests', verifierFiles(task)),
    ...(instance.patch !== '' && {
      'solution/gold.diff': instance.patch,
      'solution/solve.sh': solution(plan, workdir),
    }),
  };
}

type Task = {
  instance: Instance;
  plan: InstancePlan;
  workdir: string;
  activate: string;
  /** Time limit of the tests in seconds. */
  limit: number;
};

const inFolder = (folder: string, files: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]));

const stepsOf = ({ environment }: Instance, role: 'agent' | 'evaluation'): Step[] =>
  (environment?.setup ?? []).filter(({ roles }) => roles.includes(role));

/** Returns the files of the agent's image. A layer removes `prepare`, so the agent cannot read the content of `prepare`. */
function environmentFiles({ instance, workdir, activate }: Task): Record<string, string> {
  const { hidden = [], history } = instance.environment ?? {};
  const steps = numbered('"$here"/steps');
  const inTree = hidden.filter((path) => path.startsWith(`${workdir}/`));
  return {
    Dockerfile: dockerfile(instance, workdir, [
      `COPY prepare ${PREPARED}`,
      `RUN bash ${PREPARED}/prepare.sh && rm -rf ${PREPARED}`,
      // Harbor runs commands of agents with `bash -c`, which reads the file that BASH_ENV names.
      ...(activate === '' ? [] : [`COPY activate.sh ${ACTIVATE}`, `ENV BASH_ENV=${ACTIVATE}`]),
    ]),
    ...(activate !== '' && {
      'activate.sh': `[ -n "\${SWEFARM_ACTIVE:-}" ] || { export SWEFARM_ACTIVE=1; ${activate}\n} >/dev/null 2>&1\n`,
    }),
    'prepare/prepare.sh': PREPARE,
    'prepare/plan.sh': lines([
      ...pathVariables(workdir),
      `history=${history === 'replaced' ? 'replace' : 'prune'}`,
      STEP,
      steps.function('setup', stepsOf(instance, 'agent')),
    ]),
    ...inFolder('prepare/steps', steps.files()),
    'prepare/hidden': lines(hidden),
    // The clean tree has the hidden files, so a patch that adds a hidden file would not apply.
    'prepare/exclude': lines([
      ...BUILD_OUTPUTS,
      ...inTree.map((path) => pattern(path.slice(workdir.length))),
    ]),
  };
}

function verifierFiles({ instance, plan, workdir, limit }: Task): Record<string, string> {
  const steps = numbered('/tests/steps');
  return {
    Dockerfile: dockerfile(instance, workdir, ['COPY . /tests/']),
    'test.sh': TEST,
    'grade.py': GRADE,
    'readers.py': READERS,
    'plan.sh': lines([
      `workdir=${shellQuoted(workdir)}`,
      `patch_path=${shellQuoted(plan.patch_path)}`,
      `unapplied=${plan.unapplied}`,
      `limit=${Math.ceil(limit)}`,
      STEP,
      steps.function('setup', stepsOf(instance, 'evaluation')),
      steps.function('before', plan.before),
      applyFunction(plan),
      steps.function('after', plan.after),
    ]),
    ...inFolder('steps', steps.files()),
    'eval.sh': plan.script,
    'task.json': jsonText(gradedBy(instance, plan), 1),
  };
}

/** Returns a pattern of .gitignore that matches exactly this path. */
const pattern = (path: string): string => path.replace(/[\\[\]*? ]/g, '\\$&');

/** Returns shell variables with the paths of the repository and of {@link START}. */
const pathVariables = (workdir: string): string[] => [`workdir=${shellQuoted(workdir)}`, `start=${START}`];

const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join('');

/** Shell function that runs the script of a step. */
const STEP = `step() { # step must|may SECONDS NAME FILE
  echo "== $3"
  timeout -s KILL "$2" bash "$4" </dev/null || [ "$1" = may ] || { echo "step failed: $3" >&2; return 1; }
}`;

/** Names scripts of steps in `folder` by numbers. `function` returns a shell function that runs steps up to the first failure. */
function numbered(folder: string) {
  const scripts: string[] = [];
  const call = ({ name, script, timeout, may_fail }: Step): string => {
    const file = `${folder}/${scripts.push(script)}.sh`;
    return `  step ${may_fail ? 'may' : 'must'} ${Math.ceil(timeout)} ${shellQuoted(name)} ${file} || return\n`;
  };
  return {
    function: (name: string, steps: readonly Step[]): string =>
      `${name}() {\n${steps.map(call).join('')}  true\n}`,
    files: (): Record<string, string> =>
      Object.fromEntries(scripts.map((script, at) => [`${at + 1}.sh`, `${script}\n`])),
  };
}

/** Returns the shell function `apply`. The first command preserves white space; the program `patch` is omitted (see apply.ts). */
function applyFunction({ apply, patch_path, reset_between, already_applied }: InstancePlan): string {
  const exact = ['git', 'apply', '--verbose', '--whitespace=nowarn', patch_path];
  const others = apply.map(({ argv }) => argv).filter(([program]) => program !== 'patch');
  const attempts = apply.length === 0 ? [] : [exact, ...others];
  const reset = reset_between.map((argv) => `  ${command(argv)}\n`).join('');
  const tries = attempts
    .map((argv, at) => `${at === 0 ? '' : reset}  attempt ${command(argv)} && return\n`)
    .join('');
  const last =
    attempts.length === 0 ? '  true' : already_applied ? `  attempt ${command(already_applied)}` : '  false';
  return `apply() {\n${tries}${last}\n}`;
}

/** Returns a script that applies the gold patch with the commands of the harness. */
const solution = ({ apply, patch_path, reset_between }: InstancePlan, workdir: string): string => {
  const used = apply.length === 0 ? [['git', 'apply', patch_path]] : apply.map(({ argv }) => argv);
  const reset = reset_between.map((argv) => `${command(argv)}\n`).join('');
  const tries = used.map((argv) => `${command(argv)} && exit\n`).join(reset);
  return `#!/bin/bash\n# Applies the gold patch.\ncd ${shellQuoted(workdir)} || exit\ncp /solution/gold.diff ${shellQuoted(patch_path)}\n${tries}exit 1\n`;
};

function gradedBy({ FAIL_TO_PASS, PASS_TO_PASS }: Instance, { outcomes, verdict }: InstancePlan) {
  const { rule, expected } = verdict;
  const tests = { rule, FAIL_TO_PASS, PASS_TO_PASS, expected };
  if (outcomes.from === 'log') return { ...tests, dialect: outcomes.dialect, parser: outcomes.parser };
  return { ...tests, pattern: outcomes.from === 'exit_code' ? outcomes.pattern : undefined };
}

function dockerfile({ image, environment }: Instance, workdir: string, rest: readonly string[]): string {
  const variables = Object.entries(environment?.env ?? {}).map(
    ([name, value]) => `ENV ${name}="${value.replace(/[\\"$]/g, '\\$&')}"`,
  );
  return lines([`FROM ${image}`, ...variables, `WORKDIR ${workdir.replace(/[\\$]/g, '\\$&')}`, ...rest]);
}

const instruction = ({ repo, problem_statement }: Instance, workdir: string): string =>
  `The repository ${repo} is in ${workdir}. Solve this issue:

<issue>
${problem_statement}
</issue>

Change the source files so that the issue is solved in general, not only for the example it shows. Do not change existing tests or the project's configuration; other tests will judge your work.
`;

function taskToml({ instance, plan, workdir, limit }: Task, { network, agentSeconds }: TaskOptions): string {
  const { instance_id, repo, family, base_commit, environment, needs_egress } = instance;
  const defaults = SandboxConfig.parse({});
  const mode = (egress: boolean): string =>
    `network_mode = ${toml(network === 'public' || egress ? 'public' : 'no-network')}`;
  const own = [...(environment?.setup ?? []), ...plan.before, ...plan.after];
  const seconds = own.reduce((sum, { timeout }) => sum + timeout, limit + MARGIN_SECONDS);
  return lines([
    'schema_version = "1.4"',
    'source = "swefarm"',
    '\n[metadata]',
    `instance_id = ${toml(instance_id)}`,
    `repo = ${toml(repo)}`,
    `base_commit = ${toml(base_commit)}`,
    `family = ${toml(family)}`,
    `grader = ${toml(plan.grader)}`,
    '\n[agent]',
    `timeout_sec = ${decimal(agentSeconds)}`,
    '\n[environment]',
    `build_timeout_sec = ${decimal(BUILD_SECONDS)}`,
    `cpus = ${Math.max(defaults.cpus, environment?.cpus ?? 0)}`,
    `memory_mb = ${Math.ceil(Math.max(defaults.memory_bytes, environment?.memory_bytes ?? 0) / MIB)}`,
    mode(false),
    '\n[verifier]',
    `timeout_sec = ${decimal(Math.ceil(seconds))}`,
    'environment_mode = "separate"',
    mode(needs_egress),
    '\n[[verifier.collect]]',
    `command = ${toml(lines(pathVariables(workdir)) + COLLECT)}`,
    'timeout_sec = 300.0',
  ]);
}

const decimal = (value: number): string => (Number.isInteger(value) ? value.toFixed(1) : String(value));
/** Returns a TOML string. JSON strings are valid TOML, except that TOML must escape DEL. */
const toml = (text: string): string => jsonText(text).replaceAll('\x7f', '\\u007f');
