/** Generates scripts of long conversations for load tests: the output of the commands makes the prompt grow to a given size. */
import type { ScriptInput, Turn } from './script.ts';
import { loadTokenizer } from './tokenizer.ts';

export type LongConversation = {
  /** Total number of turns; the last one submits. */
  turns: number;
  /** Tokens of the last prompt and its answer, counted by testkit's tokenizer with the template `plain`. */
  targetTokens: number;
  /** Tokens the agent's own prompts take before the first answer. */
  openingTokens?: number;
  /** Tokens the agent writes around each command's output. */
  frameTokens?: number;
  /** Number of variants with different words, so that the rollouts of a group differ. */
  variants?: number;
  match?: string;
};

type TurnInput = { command: string; thought: string };

const printed = (line: string, lines: number): string =>
  Array.from({ length: lines }, (_, i) => `${line}${String(i + 1).padStart(3, '0')}\n`).join('');

/** A script whose rollouts all have `turns` turns. The commands need only bash and print lines of 40 to 60 bytes. */
export function generateScript(long: LongConversation): ScriptInput {
  const { turns, targetTokens, openingTokens = 1000, frameTokens = 40, variants = 1, match = '' } = long;
  const tokenizer = loadTokenizer();
  const count = (text: string) => tokenizer.encode(text).ids.length;
  const perTurn = Math.max(0, (targetTokens - openingTokens) / Math.max(1, turns - 1));

  const one = (variant: number): Partial<Turn>[] => {
    const list: Partial<Turn>[] = [];
    // The rest that is smaller than a line is carried over to the next turn.
    let owed = 0;
    for (let turn = 0; turn < turns - 1; turn++) {
      const line = `printed in turn ${turn} of variant ${variant}, line `;
      const costOf = (lines: number) => {
        const { thought, command } = speak(turn, line, lines);
        return (
          frameTokens + count(`${thought}\n\n\`\`\`bash\n${command}\n\`\`\``) + count(printed(line, lines))
        );
      };
      owed += perTurn;
      // Lines differ only in their numbers, so two probes suffice to find how many fit.
      const few = costOf(1);
      const lines = few >= owed ? 0 : Math.round(1 + ((owed - few) * 50) / (costOf(51) - few));
      owed -= costOf(lines);
      list.push(speak(turn, line, lines));
    }
    return [...list, { submit: true }];
  };
  const all = Array.from({ length: variants }, (_, variant) => one(variant));
  return { conversations: [{ ...(match && { match }), variants: all }] } as ScriptInput;
}

function speak(turn: number, line: string, lines: number): TurnInput {
  const command = lines === 0 ? 'true' : `printf '${line}%03d\\n' {1..${lines}}`;
  return { thought: `Turn ${turn}: I look at the next part of the tree before I change anything.`, command };
}
