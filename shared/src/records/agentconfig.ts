/** Section `agent` of a run record. A field that a submitter may set declares its flag and help. */
import { z } from 'zod';
import { AGENT_NAMES, agentsWith, DEFAULT_AGENT } from './agents.ts';
import { MOST } from './bounds.ts';
import { AgentCard } from './card.ts';
import { PicturesMode } from './picture.ts';
import { setting } from './setting.ts';
import { PromptSet, Toolset } from './toolset.ts';

const seconds = z.number().max(MOST.seconds);
const textBytes = z.number().int().positive().max(MOST.textBytes);
const tokens = z.number().int().positive().max(MOST.tokens);
const steps = z.number().int().max(MOST.steps);

export const AgentConfig = z.object({
  type: setting(
    '--agent <agent>',
    'who works on the instance: mini asks a model, golden and noop need none, patch applies --patches',
    z.enum(AGENT_NAMES).default(DEFAULT_AGENT),
    { choices: agentsWith({ byName: true }) },
  ),
  card: setting(
    '--agent-card <file>',
    'card of an agent of your own that comes as a program, instead of --agent (docs/agents.md)',
    AgentCard.nullable().default(null),
    { form: 'card' },
  ),
  /** Values of the card's options. */
  options: setting(
    '--agent-option <key=value>',
    "value of an option of the agent's card; see swefarm agents list",
    z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
  ),
  option_files: setting(
    '--agent-file <option=file>',
    "file for an option of the agent's card that takes one",
    z.record(z.string(), z.string().max(MOST.textBytes)).default({}),
    { form: 'file' },
  ),
  train_lines: setting(
    '--train-lines <which>',
    'lines of an agent that comes as a program that are trained on; abandoned: also answers that were never continued',
    z.enum(['all', 'main', 'abandoned']).default('all'),
  ),
  whole_prompt_limit: setting(
    '--whole-prompt-limit <n>',
    'most prompts of an agent that comes as a program that continue no earlier answer, such as the first of a sub-agent',
    steps.positive().default(16),
  ),
  answer_limit: setting(
    '--answer-limit <tokens>',
    'most tokens that the model may answer in a rollout (default: no limit)',
    tokens.nullable().default(null),
  ),
  cost_limit: setting(
    '--cost-limit <dollars>',
    'most US dollars that the answers of a rollout may cost, by --prices (default: no limit)',
    z.number().positive().max(1e6).nullable().default(null),
  ),
  action: setting(
    '--action <form>',
    'how the model acts: one fenced block, tool calls, or one patch as its answer',
    z.enum(['fenced', 'tool', 'patch']).default('fenced'),
  ),
  prompts: setting(
    '--prompts <name>',
    'prompt sets: a name that comes with swefarm, or files with weights, a.yaml=0.7,b.yaml=0.3',
    z.union([z.string(), z.array(PromptSet).min(1).max(16)]).default('default'),
  ),
  /** Empty: bash and submit_solution, if `action` is `tool`. */
  toolset: setting(
    '--toolset <names>',
    'toolsets: bash, edit, or files, with weights: edit=0.5,own.yaml=0.5 (default: the tools of --action)',
    z.array(Toolset).max(16).default([]),
  ),
  prompt_overrides: setting(
    '--prompt <key=file>',
    'replace one text of the prompt set by the content of a file',
    z.record(z.string(), z.string()).default({}),
    { form: 'file' },
  ),
  step_limit: setting('--step-limit <n>', 'most turns of a rollout', steps.positive().default(250)),
  step_timeout: setting(
    '--step-timeout <seconds>',
    'longest time of one command',
    seconds.positive().default(60),
  ),
  time_limit: setting(
    '--time-limit <seconds>',
    'longest time of the agent in all; it does not run while the policy is paused',
    seconds.positive().default(3600),
  ),
  context_limit: setting(
    '--context-limit <tokens>',
    "most tokens of prompt and answer (default: the endpoint's own limit)",
    tokens.nullable().default(null),
  ),
  max_sequence_tokens: setting(
    '--max-sequence-tokens <n>',
    'most tokens after the first prompt, over all turns (default: no limit)',
    tokens.nullable().default(null),
  ),
  format_limit: setting(
    '--format-limit <n>',
    'malformed answers in a row that end a rollout',
    steps.positive().default(3),
  ),
  collapse_limit: setting(
    '--collapse-limit <n>',
    'warn the model after the same command so often in a row; 0: never',
    steps.nonnegative().default(3),
  ),
  observation_limit: setting(
    '--observation-limit <chars>',
    'most characters of an observation; the middle of a longer one is cut out',
    textBytes.default(10_000),
  ),
  resume_turns: setting(
    '--resume-turns <when>',
    'continue a rollout that lost its worker from its recorded turns; auto: where the tokens are exact',
    z.enum(['auto', 'on', 'off']).default('auto'),
  ),
  pictures: setting(
    '--pictures <how>',
    'pictures of an issue: sent to the model, or left out so that it gets the text alone',
    PicturesMode.default('send'),
  ),
  max_submits: setting(
    '--max-submits <n>',
    'submits of agent mini: after each but the last whose tests fail it gets feedback and goes on (docs/prompts.md)',
    z.number().int().positive().max(20).default(1),
  ),
  feedback: setting(
    '--feedback <what>',
    'what feedback on a submit tells: that the tests failed, or also which, by their names',
    z.enum(['verdict', 'tests']).default('verdict'),
  ),
  after_submit: setting(
    '--after-submit <what>',
    'the repository after a submit that failed: left as it is, or reset to its first state',
    z.enum(['keep', 'reset']).default('keep'),
  ),
  patch_source: setting(
    '--patch-source <source>',
    'what the patch is: the changes of the tree, or what the agent printed when it submitted',
    z.enum(['tree', 'submission']).default('tree'),
  ),
});
export type AgentConfig = z.infer<typeof AgentConfig>;
