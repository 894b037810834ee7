/**
 * Plays ten thousand generated conversations, and five thousand of agents that come as programs, in both renderers, with the real chat templates of 16 families and, for eight of them, with
 * our templates of the same structure. The server renders with jinja2, as transformers does.
 * usage: run.ts [--folder FOLDER] [--conversations N] [--only NAME]. FOLDER stores the downloaded packages. Last line: N passed, N failed
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { errorMessage } from '@swefarm/shared';
import fc from 'fast-check';
import { agentTalks, openTalkCounts, playAgent } from './agenttalk.ts';
import { FAMILIES, type Family, MORE } from './families.ts';
import { familyFolder, type Render, startSamplingServer, withObjects } from './server.ts';
import { play, talks } from './talk.ts';

/** File names of the real templates in the sources of llama-cpp-python, by family. */
const REAL: Readonly<Record<string, string>> = {
  qwen3: 'Qwen-Qwen3-0.6B.jinja',
  'qwen3-coder': 'Qwen3-Coder.jinja',
  'nemotron-3': 'NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja',
  'glm-4': 'GLM-4.6.jinja',
  'deepseek-v3': 'deepseek-ai-DeepSeek-V3.1.jinja',
  'llama-3.1': 'meta-llama-Llama-3.1-8B-Instruct.jinja',
  mistral: 'Mistral-Small-3.2-24B-Instruct-2506.jinja',
  'gpt-oss': 'openai-gpt-oss-120b.jinja',
  'qwen2.5': 'Qwen-Qwen2.5-7B-Instruct.jinja',
  'hermes-3': 'NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja',
  'qwen3.5': 'Qwen3.5-4B.jinja',
  'deepseek-v3.2': 'deepseek-ai-DeepSeek-V3.2.jinja',
  'deepseek-v4': 'deepseek-ai-DeepSeek-V4.jinja',
  'minimax-m2': 'MiniMax-M2.jinja',
  'nemotron-nano-2': 'NVIDIA-Nemotron-Nano-v2.jinja',
  'kimi-k2': 'moonshotai-Kimi-K2.jinja',
};
const PACKAGE = 'llama-cpp-python==0.3.36';

const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });

/** Installs a Python with jinja2 and the real templates unless they are in the folder, and returns their paths. */
function prepare(folder: string): { python: string; real: string } {
  const [venv, real] = [join(folder, 'venv'), join(folder, 'real')];
  const python = join(venv, 'bin', 'python');
  mkdirSync(folder, { recursive: true });
  if (!existsSync(python)) {
    run('python3', '-m', 'venv', venv);
    run(python, '-m', 'pip', 'install', '--quiet', 'jinja2==3.1.6');
  }
  if (!existsSync(real)) {
    const sources = join(folder, 'sources');
    mkdirSync(`${real}.part`, { recursive: true });
    const download = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--no-binary', 'llama-cpp-python'];
    run(python, ...download, '--dest', sources, PACKAGE);
    const [archive = ''] = readdirSync(sources).filter((name) => name.endsWith('.tar.gz'));
    const templates = ['--wildcards', '*/models/templates/*.jinja', '--transform', 's#.*/##'];
    run('tar', '-xzf', join(sources, archive), '-C', `${real}.part`, ...templates);
    renameSync(`${real}.part`, real);
  }
  return { python, real };
}

/** Starts one process of jinja2 for all templates, which answers in the order of the requests. */
function startJinja(python: string): Disposable & { render: (template: string) => Render } {
  const child = spawn(python, [new URL('render.py', import.meta.url).pathname], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting: ((line: string) => void)[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line));
  return {
    render: (template) => async (chat) => {
      const line = JSON.stringify({ template, ...chat, messages: withObjects(chat.messages) });
      const answer = new Promise<string>((resolve) => waiting.push(resolve));
      child.stdin.write(`${line}\n`);
      const { text, error } = JSON.parse(await answer);
      if (error !== undefined) throw new Error(error);
      return text;
    },
    [Symbol.dispose]: () => child.kill(),
  };
}

/** Plays conversations of our loop, and half as many of agents that come as programs. Returns what the latter were. */
async function check(family: Family, source: string, render: Render, folder: boolean, numRuns: number) {
  await using made = await familyFolder(family.tokens, source);
  await using server = await startSamplingServer(made.tokenizer, render);
  const decode = (ids: Iterable<number>) => made.tokenizer.decode(ids);
  const property = fc.asyncProperty(talks, (talk) =>
    play(talk, family, server, folder ? made.folder : null, decode, render),
  );
  await fc.assert(property, { numRuns, seed: 14 });
  const counts = openTalkCounts();
  const stage = { family, server, folder: folder ? made.folder : null, decode, reference: render, counts };
  const ofAgents = fc.asyncProperty(agentTalks, (steps) => playAgent(steps, stage));
  await fc.assert(ofAgents, { numRuns: Math.ceil(numRuns / 2), seed: 28 });
  return counts;
}

const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: '.swefarm/cache/templates' },
    conversations: { type: 'string', default: '10000' },
    only: { type: 'string' },
  },
});
const { python, real } = prepare(resolve(values.folder));
using jinja = startJinja(python);
const families = [...FAMILIES, ...MORE].filter(
  ({ name }) => values.only === undefined || name === values.only,
);
const kinds = families.reduce((sum, family) => sum + (FAMILIES.includes(family) ? 4 : 2), 0);
const each = Math.ceil(Number(values.conversations) / kinds);
let [passed, failed] = [0, 0];
for (const family of families) {
  const own = new URL(`chats/${family.name}.jinja`, import.meta.url);
  const ours = existsSync(own) ? readFileSync(own, 'utf8') : null;
  const theirs = readFileSync(join(real, REAL[family.name] ?? ''), 'utf8');
  for (const [whose, source] of [['ours', ours] as const, ['real', theirs] as const]) {
    if (source === null) continue;
    for (const folder of [true, false]) {
      const what = `${family.name}, ${whose}, rendered by the ${folder ? 'folder' : 'server'}`;
      try {
        const render = jinja.render(source);
        const { continued, forked, beyond, refused } = await check(family, source, render, folder, each);
        passed++;
        const agents = `${continued} + ${forked} prompts of agents continue, ${beyond} of which the template would not write whole, ${refused} refused`;
        console.log(`ok   ${what}: ${each} conversations; ${agents}`);
      } catch (error) {
        failed++;
        const cause = error instanceof Error && error.cause ? `\n${errorMessage(error.cause)}` : '';
        console.log(`FAIL ${what}: ${errorMessage(error)}${cause}`);
      }
    }
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
