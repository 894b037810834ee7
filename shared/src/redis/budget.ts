/** Decides from the journal and the failure table whether a rollout gets another attempt. This code has no side effects. */
import { FAILURES, type Failure, type FailureClass } from '../failures/failure.ts';
import type { JournalEntry } from './journal.ts';

export type Decision =
  | { action: 'run'; delayMs: number; avoidWorkers: string[]; avoidNodes: string[] }
  | { action: 'give_up'; failure: Failure; parked: boolean };

/** Number of consecutive losses of different workers after which a rollout is parked. */
const CRASHES_IN_A_ROW = FAILURES.lost.budget;
/** Total number of losses of workers after which a rollout is parked, for farms with few workers. */
const CRASHES_IN_ALL = 9;
const FIRST_DELAY_MS = 2_000;
const LONGEST_DELAY_MS = 60_000;

/**
 * Decides whether, when and where the next attempt runs.
 * @param entries earlier attempts: one without an end counts as a lost worker; a drained or done one does not count
 * @param random from 0 to 1; spreads the delays of rollouts that failed at the same time
 */
export function decide(entries: readonly JournalEntry[], random: number = Math.random()): Decision {
  const counted = entries.filter((entry) => entry.end?.class !== 'drained' && entry.end?.class !== 'done');
  const spent = exhaustedClass(counted);
  if (spent) return giveUp(spent, counted, false);
  if (isPoison(counted)) return giveUp('lost', counted, true);
  const elsewhere = counted.filter((entry) => FAILURES[classOf(entry)].where === 'elsewhere');
  const failures = counted.filter((entry) => !isCrash(entry)).length;
  const last = counted.at(-1);
  const waits = last !== undefined && !isCrash(last);
  const delayMs = waits ? Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), LONGEST_DELAY_MS) : 0;
  return {
    action: 'run',
    delayMs: Math.round(delayMs * (0.5 + random / 2)),
    avoidWorkers: [...new Set(elsewhere.map(({ worker }) => worker))],
    avoidNodes: [...new Set(elsewhere.map(({ node }) => node))],
  };
}

function classOf(entry: JournalEntry): FailureClass {
  const ended = entry.end?.class;
  return ended === undefined || ended === 'drained' || ended === 'done' ? 'lost' : ended;
}

const isCrash = (entry: JournalEntry): boolean => classOf(entry) === 'lost';

/** Returns the class of failures that used up its budget first; null: none. */
function exhaustedClass(entries: readonly JournalEntry[]): FailureClass | null {
  const classes = entries.map(classOf);
  const countTo = (at: number): number =>
    classes.slice(0, at + 1).filter((name) => name === classes[at]).length;
  return classes.find((name, at) => name !== 'lost' && countTo(at) >= FAILURES[name].budget) ?? null;
}

function isPoison(entries: readonly JournalEntry[]): boolean {
  const row = entries.slice(entries.findLastIndex((entry) => !isCrash(entry)) + 1);
  return (
    new Set(row.map(({ worker }) => worker)).size >= CRASHES_IN_A_ROW ||
    entries.filter(isCrash).length >= CRASHES_IN_ALL
  );
}

function giveUp(failureClass: FailureClass, entries: readonly JournalEntry[], parked: boolean): Decision {
  const last = entries.findLast((entry) => classOf(entry) === failureClass);
  const message =
    failureClass === 'lost'
      ? `the worker stopped responding, last ${last?.worker} on ${last?.node}`
      : (last?.end?.cause ?? FAILURES[failureClass].meaning);
  const { stage } = FAILURES[failureClass];
  return {
    action: 'give_up',
    failure: { stage, class: failureClass, message, attempts: entries.length },
    parked,
  };
}
