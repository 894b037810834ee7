/** Defines how agents that come as programs run a command and finish: by the tools that they offer, or by a text format. */
import type { ToolOffer } from './turntext.ts';

/** Names of the tool that runs a command, in the order of preference. */
const SHELLS = ['bash', 'Bash', 'exec_command', 'terminal', 'run_shell_command'];
/** Names of the tool that ends the work. */
const ENDS = ['submit_solution', 'submit', 'finish'];
/** Arguments that make a shell tool wait for the end of a command, if its schema has them. */
const WAITS: Readonly<Record<string, unknown>> = {
  yield_time_ms: 30_000,
  is_background: false,
  timeout: undefined,
};

type Schema = {
  properties?: Record<string, { type?: unknown; enum?: unknown[] }>;
  required?: unknown;
};
export type Called = { name: string; args: Record<string, unknown> };

const named = (tools: readonly ToolOffer[], names: readonly string[]): ToolOffer | undefined =>
  names.flatMap((name) => tools.filter((tool) => tool.function?.name === name)).at(0);

/** Returns the call that runs a command. Another tool takes the command as its first argument. */
export function shellCall(tools: readonly ToolOffer[], command: string): Called {
  const tool = named(tools, SHELLS) ?? tools[0];
  const name = String(tool?.function?.name ?? 'bash');
  const { properties = {} } = schemaOf(tool);
  const names = Object.keys(properties);
  const key = ['command', 'cmd'].find((one) => names.includes(one)) ?? names[0] ?? 'command';
  const waits = names.filter((one) => WAITS[one] !== undefined).map((one) => [one, WAITS[one]]);
  // OpenHands returns from a silent command after ten seconds otherwise; its unit is a second.
  const seconds = name === 'terminal' && names.includes('timeout') ? { timeout: 300 } : {};
  return {
    name,
    args: { [key]: command, ...Object.fromEntries(waits), ...seconds, ...required(tool, [key]) },
  };
}

/**
 * Returns the call that ends the work, or null if the tools have none: an agent with one tool expects a command that prints a sentinel,
 * another one a text without a call.
 */
export function endCall(tools: readonly ToolOffer[], text: string): Called | null {
  const tool = named(tools, ENDS);
  if (!tool) return null;
  const key = Object.keys(schemaOf(tool).properties ?? {})[0];
  const first = key === undefined ? {} : { [key]: text };
  return { name: String(tool.function?.name), args: { ...first, ...required(tool, Object.keys(first)) } };
}

const schemaOf = (tool: ToolOffer | undefined): Schema => (tool?.function?.parameters as Schema) ?? {};

/** Values of the other required arguments. */
function required(tool: ToolOffer | undefined, given: readonly string[]): Record<string, unknown> {
  const { properties = {}, required: names } = schemaOf(tool);
  const others = Array.isArray(names) ? names.map(String).filter((name) => !given.includes(name)) : [];
  return Object.fromEntries(
    others.map((name) => {
      const { type, enum: values } = properties[name] ?? {};
      if (values?.length) return [name, values[0]];
      return [name, type === 'boolean' ? false : type === 'integer' || type === 'number' ? 1 : name];
    }),
  );
}

/** Reads the tools that a rendered system message declares: a line of JSON for each, between <tools> and </tools>. */
export function declaredTools(system: string): ToolOffer[] {
  const from = system.lastIndexOf('<tools>\n');
  const to = system.lastIndexOf('\n</tools>');
  if (from === -1 || to < from) return [];
  return system
    .slice(from + '<tools>\n'.length, to)
    .split('\n')
    .flatMap((line): ToolOffer[] => {
      try {
        return [JSON.parse(line)];
      } catch {
        return [];
      }
    });
}

/** Returns whether a first message asks for keystrokes in JSON, as Terminus 2 does. */
export const asksForKeystrokes = (firstUser: string): boolean => firstUser.includes('"keystrokes"');

/** Returns an answer of keystrokes that run the commands. */
export const keystrokes = (commands: readonly string[], thought: string, isDone: boolean): string =>
  JSON.stringify({
    analysis: thought,
    plan: 'Continue.',
    commands: commands.map((command) => ({ keystrokes: `${command}\n`, duration: 3 })),
    task_complete: isDone,
  });
