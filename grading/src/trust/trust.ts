/**
 * How far a verdict can be trusted, from the text of the patch and the log alone. `forged` is said only where the
 * exit code or the state of the files proves it; everything else that a fix does not need is `suspicious`.
 * Code of the patch runs inside the test process: what imitates a whole honest run to the byte cannot be told here.
 */
import type { Instance, Report } from '@swefarm/shared';
import type { EvaluationPlan } from '../grading.ts';
import { END_MARKER, EXIT_CODE_MARKER, START_MARKER } from '../markers.ts';
import { readOutcomes } from '../outcomes.ts';
import { plain } from '../parsers/escapes.ts';
import { readsPytest } from '../parsers/pytest.ts';
import { evalTypeOf } from '../specs.ts';
import { isResolved, testsStatus } from '../verdict.ts';
import { toolFindings } from './changedtools.ts';
import { touched } from './patchfiles.ts';
import { pathFindings } from './pathfiles.ts';
import { mustEnd, sessionIn, tellsOfOther } from './session.ts';
import { unearnedFindings } from './skippedtests.ts';
import { inTheWay, withoutMeans } from './withouthooks.ts';

export type Trust = Report['trust'];

export type TrustEvidence = {
  instance: Instance;
  plan: Pick<EvaluationPlan, 'grader' | 'parser' | 'evalScript'>;
  modelPatch: string | null;
  /** With \n line ends; null when the eval script did not run. */
  log: string | null;
  outcomes: ReadonlyMap<string, string> | null;
  /** The part of the log that the outcomes were read from; null when it could not be read. */
  text: string | null;
  resolved: boolean;
  /** As the runtime saw it; null: unknown. */
  scriptExitCode: number | null;
  imageDigest: string | null;
  /** The tests ran with a network. */
  egress?: boolean;
  /** Files that decide outcomes and are not as the image has them. */
  changedFiles?: readonly string[] | undefined;
  /** Why they are not known, although somebody looked. */
  changesUnknown?: string | undefined;
};

export type TrustFinding = { level: 'suspicious' | 'forged'; reason: string };

export function assessTrust(evidence: TrustEvidence): Trust {
  const findings: TrustFinding[] = [
    ...touched(evidence.modelPatch, evidence.instance),
    ...toolFindings(evidence),
    ...pathFindings(evidence.changedFiles, evidence.modelPatch, evidence.instance),
    ...unseenFindings(evidence),
    ...scriptFindings(evidence),
    ...unearnedFindings(evidence),
    ...(evidence.log === null ? [] : logFindings(evidence, evidence.log)),
  ];
  const level = findings.some((finding) => finding.level === 'forged')
    ? 'forged'
    : findings.length > 0
      ? 'suspicious'
      : 'clean';
  return { level, reasons: findings.map((finding) => finding.reason) };
}

/** At the end of a line; the trace of bash that prints it ends in a quotation mark. */
const EXIT_CODES = new RegExp(`${EXIT_CODE_MARKER}: (-?\\d{1,6})[ \\t]*$`, 'gm');
const exitCodes = (log: string): number[] =>
  [...plain(log).matchAll(EXIT_CODES)].map(([, code]) => Number(code));

/** The exit code of the tests, as the eval script printed it last; null when it did not. */
export const lastExitCode = (log: string): number | null => exitCodes(log).at(-1) ?? null;

/** bash ends with 128 and a signal's number when it is killed; git, the script's last command, with 128 at most. */
function scriptFindings({ scriptExitCode, resolved }: TrustEvidence): TrustFinding[] {
  if (scriptExitCode === null || scriptExitCode <= 128) return [];
  const reason = `the eval script was killed before its end (exit code ${scriptExitCode})`;
  return [{ level: resolved ? 'forged' : 'suspicious', reason }];
}

/** What nobody could look at is no proof of anything, and nothing to rely on either. */
function unseenFindings({ changesUnknown, resolved }: TrustEvidence): TrustFinding[] {
  if (changesUnknown === undefined || !resolved) return [];
  return [{ level: 'suspicious', reason: `what changed during the tests is not known: ${changesUnknown}` }];
}

function logFindings(evidence: TrustEvidence, log: string): TrustFinding[] {
  return [
    ...markerFindings(evidence, log),
    ...testPatchFindings(evidence, log),
    ...exitFindings(evidence, log),
  ];
}

/** The script prints each marker once, as a trace of bash; more of them come from what it runs. */
function markerFindings({ instance, plan, resolved }: TrustEvidence, log: string): TrustFinding[] {
  if (!plan.evalScript.includes(START_MARKER)) return [];
  const starts = occurrences(log, START_MARKER);
  const ends = occurrences(log, END_MARKER);
  if (starts <= 1 && ends <= 1) return [];
  const real = log.slice(log.lastIndexOf(START_MARKER));
  const again = readOutcomes(plan.grader, plan.parser, real, instance);
  const holds =
    again.readable &&
    isResolved(testsStatus(plan.grader, evalTypeOf(instance, plan.grader), again.outcomes, instance));
  const reason = `output imitates the markers of the eval script (${starts} starts, ${ends} ends)`;
  return resolved && !holds
    ? [{ level: 'forged', reason: `${reason}, and the tests behind the real ones do not pass` }]
    : [{ level: 'suspicious', reason }];
}

/**
 * A file of the patch in the way of the test patch leaves the patch's own tests to be run. Honest patches choose such names too, gold
 * does: those of a patch that can be taken apart are taken out, and the tests decide (`withoutMeans`).
 */
function testPatchFindings({ instance, modelPatch, resolved }: TrustEvidence, log: string): TrustFinding[] {
  const start = log.includes(START_MARKER) ? log.indexOf(START_MARKER) : log.length;
  const from = log.lastIndexOf('+ git apply ', start);
  if (from < 0 || modelPatch === null) return [];
  const said = plain(log.slice(from, start));
  const refused = [...said.matchAll(/\berror: ([^\n]{1,4096}?): (?:already exists|patch does not apply)/g)];
  const named = refused
    .map((match) => match[1] ?? '')
    .filter((file) => instance.test_patch.includes(` b/${file}\n`));
  const movable = new Set(withoutMeans(modelPatch, instance)?.files);
  const own = new Set(inTheWay(modelPatch, instance));
  const held = named.filter((file) => own.has(file) || !movable.has(file));
  if (held.length === 0) return [];
  const reason = `the test patch did not apply: the patch is in its way (${held.slice(0, 3).join(', ')})`;
  const proof = held.some((file) => !movable.has(file) && modelPatch.includes(` b/${file}\n`));
  return [{ level: proof && resolved ? 'forged' : 'suspicious', reason }];
}

function exitFindings({ plan, outcomes, text, resolved }: TrustEvidence, log: string): TrustFinding[] {
  if (!readsPytest(plan.parser) || !outcomes || outcomes.size === 0 || text === null) return [];
  const codes = exitCodes(log);
  // The script prints it once: what says that all was well may be another's.
  const exitCode = codes.find((code) => code !== 0) ?? codes[0] ?? null;
  const failed = [...outcomes.values()].some(
    (status) => status.startsWith('FAILED') || status.startsWith('ERROR'),
  );
  const passed = [...outcomes.values()].includes('PASSED');
  const read = plain(text);
  const session = sessionIn(read);
  if (exitCode !== null && exitCode !== 0 && passed && !failed) {
    // 1: pytest saw a failure that the log hides; anything else: it never came to an end.
    const proof = session.ended
      ? exitCode === 1 && !tellsOfOther(read, outcomes)
      : exitCode === 1 || mustEnd(plan.evalScript);
    const reason = `the log tells of no failure, but the tests ended with exit code ${exitCode}`;
    return [{ level: proof && resolved ? 'forged' : 'suspicious', reason }];
  }
  if (passed && !session.ended) {
    const proof = exitCode === 0 && mustEnd(plan.evalScript);
    const reason = 'the log has passed tests but no end of the test session';
    return [{ level: proof && resolved ? 'forged' : 'suspicious', reason }];
  }
  if (codes.length > 1) {
    return [
      { level: 'suspicious', reason: `output imitates the exit code of the tests (${codes.length} times)` },
    ];
  }
  if (exitCode === 0 && session.tellsOfFailure) {
    const reason = 'the test session tells of failures, but ended with exit code 0';
    return [{ level: 'suspicious', reason }];
  }
  return [];
}

function occurrences(text: string, needle: string): number {
  let count = 0;
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) count++;
  return count;
}
