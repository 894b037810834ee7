/**
 * Chooses which turn of which variant answers a request. The history in the request decides, so that a repeated request gets the same
 * answer, except in conversations that number requests, for agents that shorten their history.
 */
import { parseRolloutId, SwefarmError } from '@swefarm/shared';
import { type Conversation, compile, type Script, type Turn } from './script.ts';

export type Asked = {
  /** Value of the x-swefarm-rollout header, `run.instance.index`. */
  rollout: string | undefined;
  firstUser: string;
  /** Number of assistant messages in the request, which is the number of this turn, from 0. */
  turn: number;
  /** Content of the first assistant message, for requests without the header. */
  firstAssistant: string | null;
  lastMessage: string;
  /** All messages before the first answer. */
  opening: string;
};

type Chosen = { conversation: number; variant: number; turn: Turn; index: number };

export type Chooser = {
  /** Null when no conversation matches. `sounds` tests whether a first turn would have produced this text. */
  choose(asked: Asked, sounds: (turn: Turn, text: string) => boolean): Chosen | null;
};

type Candidate = { conversation: Conversation; fits: (asked: Asked) => boolean; rotation: number[] };

export function openChooser(script: Script): Chooser {
  const candidates: Candidate[] = script.conversations.map((conversation) => ({
    conversation,
    fits: fitOf(conversation),
    rotation: rotationOf(conversation),
  }));
  const next = candidates.map(() => 0);
  const requests = new Map<string, number>();
  const requestNumber = (rollout: string): number => {
    const number = requests.get(rollout) ?? 0;
    requests.set(rollout, number + 1);
    return number;
  };

  return {
    choose(asked, sounds) {
      const name = rolloutName(asked.rollout);
      const at = candidates.findIndex(
        ({ conversation, fits }) =>
          (conversation.instance === undefined || conversation.instance === name?.instanceId) && fits(asked),
      );
      const candidate = candidates[at];
      if (!candidate) return null;
      const { conversation, rotation } = candidate;
      let variant: number;
      if (name) variant = inRotation(rotation, name.index);
      else if (asked.turn === 0) variant = inRotation(rotation, next[at] ?? 0);
      else variant = recognised(conversation, asked.firstAssistant, sounds);
      if (!name && asked.turn === 0) next[at] = (next[at] ?? 0) + 1;
      const byAnswers = conversation.number === 'answers';
      const number = byAnswers ? asked.turn : requestNumber(`${asked.rollout} ${at}`);
      const found = turnAt(conversation, variant, number);
      return { conversation: at, variant, ...found };
    },
  };
}

function fitOf({ match, last, opening }: Conversation): (asked: Asked) => boolean {
  const [first, latest, before] = [match, last, opening].map((text) => compile(text) ?? (() => false));
  return (asked) =>
    first?.(asked.firstUser) === true &&
    latest?.(asked.lastMessage) === true &&
    before?.(asked.opening) === true;
}

/** Null for a header that is absent or malformed; a malformed one is ignored. */
export function rolloutName(header: string | undefined) {
  if (header === undefined) return null;
  try {
    return parseRolloutId(header);
  } catch (error) {
    if (error instanceof SwefarmError) return null;
    throw error;
  }
}

/** Variants repeated by weight and interleaved: weights 2 and 1 give 0, 1, 0. */
function rotationOf({ variants, weights }: Conversation): number[] {
  const left = weights ? [...weights] : variants.map(() => 1);
  const rotation: number[] = [];
  while (left.some((count) => count > 0)) {
    for (const [variant, count] of left.entries()) {
      if (count <= 0) continue;
      rotation.push(variant);
      left[variant] = count - 1;
    }
  }
  return rotation;
}

const inRotation = (rotation: number[], index: number): number => rotation[index % rotation.length] ?? 0;

function recognised(
  { variants }: Conversation,
  text: string | null,
  sounds: (turn: Turn, text: string) => boolean,
): number {
  const found = variants.findIndex(([first]) => first && text !== null && sounds(first, text));
  return Math.max(0, found);
}

/** The turn numbered `number`, with `repeat` unrolled; `index` is its index in the script. */
function turnAt(conversation: Conversation, variant: number, number: number): { turn: Turn; index: number } {
  const turns = conversation.variants[variant] ?? [];
  const total = turns.reduce((sum, turn) => sum + turn.repeat, 0);
  let left = conversation.after === 'restart' ? number % total : Math.min(number, total - 1);
  for (const [index, turn] of turns.entries()) {
    if (left < turn.repeat) return { turn, index };
    left -= turn.repeat;
  }
  throw new SwefarmError('bug', `no turn ${number} in a variant of ${total} turns`);
}
