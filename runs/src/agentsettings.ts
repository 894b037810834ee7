/** Finds the card of the agent that a submitter names, and converts the values of its options. */
import {
  type OptionValues,
  parseCard,
  readCard,
  readShippedCard,
  requireFileOptions,
  shippedCards,
  typedOptions,
} from '@swefarm/agents';
import { AGENTS, type AgentCard, agentsWith, nearest, type PromptSet, UsageError } from '@swefarm/shared';
import { promptSetsOf, toolsetsOf } from './sets.ts';
import { asTree, type SettingsTree } from './settingstree.ts';

/**
 * Returns the settings of a run's section `agent`. A type that is the name of a shipped card becomes `installed` with this card; a card may
 * be a mapping or the path of a file. A type other than `installed` wins over a card, because callers of a gateway may name another agent
 * than its operator.
 *
 * @throws UsageError for an unknown agent, an agent without its card, and options that the card lacks
 */
export function agentSettings(given: SettingsTree): SettingsTree {
  const { type, card, ...rest } = given;
  const others = withSets(type, rest);
  const found = cardOf(type, card);
  if (found) {
    requireFileOptions(found, asTree(others.option_files) as Record<string, string>);
    return { ...others, type: 'installed', card: found, options: optionsOf(found, others.options) };
  }
  const option = Object.keys({ ...asTree(others.options), ...asTree(others.option_files) })[0];
  if (option === undefined) return { ...others, ...(type === undefined ? {} : { type }) };
  throw new UsageError(
    `--agent-option (agent.options): agent ${type ?? 'mini'} has no option ${option}; agents with options: ${shippedCards().join(', ')}`,
  );
}

/** Reads the toolsets and prompt sets, and the way of acting that follows from them. */
function withSets(type: unknown, agent: SettingsTree): SettingsTree {
  const toolset = agent.toolset === undefined ? [] : toolsetsOf(agent.toolset);
  const prompts = agent.prompts === undefined ? undefined : promptSetsOf(agent.prompts);
  const sets = Array.isArray(prompts) ? (prompts as PromptSet[]) : [];
  if (toolset.length === 0 && sets.length === 0) return withPatch(agent);
  if (type !== undefined && type !== 'mini')
    throw new UsageError(`--toolset and files for --prompts are for agent mini, not for ${String(type)}`);
  const wanted = new Set([
    ...(toolset.length > 0 ? ['tool'] : []),
    ...sets.flatMap(({ action }) => action ?? []),
  ]);
  if (agent.action !== undefined) wanted.add(String(agent.action));
  if (wanted.size > 1)
    throw new UsageError(
      `--action (agent.action): one run acts in one way, and its sets and its settings ask for ${[...wanted].join(' and ')}: choose sets of one way`,
    );
  const [action] = wanted;
  return withPatch({
    ...agent,
    ...(toolset.length > 0 ? { toolset } : {}),
    ...(prompts === undefined ? {} : { prompts }),
    ...(action === undefined ? {} : { action }),
  });
}

/** With action patch the patch is what the model answers. */
function withPatch(agent: SettingsTree): SettingsTree {
  if (agent.action !== 'patch') return agent;
  if ((agent.patch_source ?? 'submission') === 'submission') return { ...agent, patch_source: 'submission' };
  throw new UsageError(
    '--patch-source (agent.patch_source): action patch has no other source than submission',
  );
}

function cardOf(type: unknown, card: unknown): AgentCard | null {
  if (typeof type === 'string' && type !== 'installed') {
    if (Object.hasOwn(AGENTS, type)) return null;
    if (shippedCards().includes(type)) return readShippedCard(type);
    throw new UsageError(unknownAgent(type));
  }
  if (card !== undefined && card !== null)
    return typeof card === 'string' ? readCard(card) : parseCard('agent.card', card);
  if (type !== 'installed') return null;
  throw new UsageError(
    `agent installed needs a card: name one of ${shippedCards().join(', ')} (--agent NAME), or give the file of a card (--agent-card FILE)`,
  );
}

function unknownAgent(name: string): string {
  const known = [...agentsWith({ byName: true }), ...shippedCards()];
  const best = nearest(name, known);
  const hint = best === null ? `agents: ${known.join(', ')}` : `did you mean ${best}?`;
  return `--agent (agent.type): there is no agent "${name}"; ${hint} (or give the file of a card: --agent-card FILE)`;
}

function optionsOf(card: AgentCard, given: unknown): OptionValues {
  const values = Object.entries(asTree(given)).map(([name, value]) => [
    name,
    typeof value === 'number' || typeof value === 'boolean' ? value : String(value),
  ]);
  return typedOptions(card, Object.fromEntries(values));
}
