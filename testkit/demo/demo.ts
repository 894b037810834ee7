/** The demo: a farm solves real bugs in real containers; only the model is scripted. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { buildExamples, loadScript, startScriptedPolicy, words } from '../src/index.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const SWEFARM = join(ROOT, 'producer/bin/swefarm.mjs');
/** Examples in pure Python, so that the first demo needs no compiler. */
const EXAMPLES = ['r1chardj0n3s__parse-1.20.2', 'cpburnz__pathspec-0.10.2'];
/** Index in the group picks the variant: resolved, wrong fix, turn limit, endpoint fault. */
const GROUP_SIZE = 4;
const STEP_LIMIT = 12;

const printStatus = (text = ''): void => console.error(text);
const shown = (path: string): string => relative(process.cwd(), path) || '.';

async function swefarm(args: readonly string[], expected: readonly number[]): Promise<void> {
  printStatus(`\n$ npx swefarm ${args.join(' ')}`);
  const child = spawn(process.execPath, [SWEFARM, ...args], { cwd: ROOT, stdio: 'inherit' });
  const [code, signal] = await once(child, 'exit');
  if (!expected.includes(code)) throw new Error(`swefarm ended with ${code ?? signal}`);
}

const built = await buildExamples({
  ids: EXAMPLES,
  out: join(ROOT, '.swefarm/demo/dataset'),
  note: printStatus,
});
const runtime = built.files.docker ? 'docker' : 'rootfs';
printStatus(
  `runtime: ${runtime}${runtime === 'rootfs' ? ' (no container engine that could take the examples)' : ''}`,
);
const dataset = built.files.default;
const { conversations } = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
// The probe of `--require-tokens` sends a conversation that matches no example, so the script needs an answer for it.
const smallTalk = { variants: [[{ thought: 'Let me look.', command: 'ls', repeat: 1000 }]] };
await using policy = await startScriptedPolicy({ script: { conversations: [...conversations, smallTalk] } });
printStatus(`scripted policy: ${policy.url}`);

const stamp = new Date().toISOString().replace(/\..*/, '').replaceAll(':', '');
const folder = join(ROOT, '.swefarm/demo', stamp);
await mkdir(folder, { recursive: true });
const common = words`--dataset ${shown(dataset)} --runtime ${runtime}`;
const gold = shown(join(folder, 'gold.jsonl'));
const mini = shown(join(folder, 'rollouts.jsonl'));

printStatus('\n== 1. Gold patches: does the grading work here?');
await swefarm(words`rollout ${common} --agent golden --output ${gold}`, [0]);

printStatus(
  '\n== 2. Groups of rollouts with a scripted model: some resolve, some do not, some reach the turn limit, some fail.',
);
await swefarm(
  words`rollout ${common} --agent mini --group-size ${GROUP_SIZE} --policy-url ${policy.url} --model scripted
    --require-tokens --step-limit ${STEP_LIMIT} --output ${mini}`,
  // 10: not every rollout was judged. The rollout with the endpoint fault has no reward.
  [10],
);

printStatus(`
Results:       ${mini}
Trajectories:  npx swefarm show ${mini}#${EXAMPLES[0]}.0    (add --turns for all turns)
Folder:        ${shown(dirname(resolve(mini)))}

The same with a model and a dataset of your own:
  npx swefarm rollout --dataset YOUR.jsonl --agent mini --group-size ${GROUP_SIZE} \\
    --policy-url http://localhost:8000/v1 --model YOUR-MODEL --output rollouts.jsonl

These rollouts in a browser, turn by turn (prints the address to open):
  npx swefarm show --web ${mini}`);
