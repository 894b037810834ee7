/**
 * Judges the trust of a verdict by the patch, the log and the changed files of the evaluation. The level is `forged` only if a finding
 * proves a forgery; any other finding makes the level `suspicious`. The code of the patch runs inside the test process, so this file does
 * not detect a patch that imitates a whole honest run.
 */
import { readsPytest } from '../parsers/pytest.ts';
import { END_MARKER, EXIT_CODE_MARKER, START_MARKER } from '../plan/markers.ts';
import { parserOf } from '../plan/plan.ts';
import { plainText } from '../text/escapes.ts';
import { readOutcomes } from '../verdict/outcomes.ts';
import { judge } from '../verdict/rules.ts';
import { toolFindings, toolsProve } from './changedtools.ts';
import { forgedIf, suspicious, type Trust, type TrustEvidence, type TrustFinding, wins } from './finding.ts';
import { patchFindings } from './patchfiles.ts';
import { pathFindings } from './pathfiles.ts';
import { mustPrintEnd, sessionIn, showsOtherFailure } from './session.ts';
import { skippedTestFindings } from './skippedtests.ts';
import { replacedTestFiles, withoutTestHooks } from './withouthooks.ts';

export function assessTrust(evidence: TrustEvidence): Trust {
  const findings: TrustFinding[] = [
    ...patchFindings(evidence.modelPatch, evidence.instance),
    ...toolFindings(evidence),
    ...pathFindings(evidence.changedFiles, evidence.modelPatch, evidence.instance),
    ...runFindings(evidence),
    ...skippedTestFindings(evidence),
    ...(evidence.log === null ? [] : logFindings(evidence, evidence.log)),
  ];
  const level = findings.some((finding) => finding.level === 'forged')
    ? 'forged'
    : findings.length > 0
      ? 'suspicious'
      : 'clean';
  return { level, reasons: findings.map((finding) => finding.reason) };
}

/** Matches only at the end of a line: bash's trace of the command that prints the code ends in a quotation mark. */
const EXIT_CODES = new RegExp(`${EXIT_CODE_MARKER}: (-?\\d{1,6})[ \\t]*$`, 'gm');
const exitCodes = (log: string): number[] =>
  [...plainText(log).matchAll(EXIT_CODES)].map(([, code]) => Number(code));

/** Returns the exit code of the tests that the eval script printed last, or null. */
export const lastExitCode = (log: string): number | null => exitCodes(log).at(-1) ?? null;

function* runFindings(evidence: TrustEvidence): Generator<TrustFinding> {
  const { changesUnknown, logCut, scriptExitCode, resolved, plan } = evidence;
  // A verdict proves nothing if the changes are unknown. In a Harbor task, the agent can make the list of changes too long.
  if (changesUnknown !== undefined && (resolved || wins(evidence)))
    yield forgedIf(toolsProve(evidence), `what changed during the tests is not known: ${changesUnknown}`);
  // The missing middle of a log that the patch made too long may contain failures.
  if (logCut && resolved) yield suspicious('the test log is longer than log_limit: its middle is not known');
  // A killed bash exits with 128 plus the number of the signal. git, the last command of the script, exits with at most 128.
  // If the tests write a reward, their exit code does not count.
  if (scriptExitCode !== null && scriptExitCode > 128 && plan.verdict.rule !== 'reward')
    yield forgedIf(resolved, `the eval script was killed before its end (exit code ${scriptExitCode})`);
}

function logFindings(evidence: TrustEvidence, log: string): TrustFinding[] {
  return [
    ...markerFindings(evidence, log),
    ...testPatchFindings(evidence, log),
    ...exitFindings(evidence, log),
  ];
}

/** bash traces each marker of the script once. Other markers come from programs that the script runs. */
function markerFindings({ instance, plan, resolved }: TrustEvidence, log: string): TrustFinding[] {
  if (plan.outcomes.from !== 'log' || !plan.script.includes(START_MARKER)) return [];
  const starts = occurrences(log, START_MARKER);
  const ends = occurrences(log, END_MARKER);
  if (starts <= 1 && ends <= 1) return [];
  const real = log.slice(log.lastIndexOf(START_MARKER));
  const evidence = { log: real, exitCode: null, files: new Map<string, string>() };
  const read = readOutcomes(plan, evidence, instance);
  const isResolved = read.readable && judge({ read, evidence, verdict: plan.verdict, instance }).resolved;
  const reason = `output imitates the markers of the eval script (${starts} starts, ${ends} ends)`;
  const proof = resolved && !isResolved;
  return [forgedIf(proof, proof ? `${reason}, and the tests behind the real ones do not pass` : reason)];
}

/**
 * A file of the patch can prevent the test patch from being applied, so that the tests of the patch run instead. Honest patches and gold
 * may have files with the same names: if the patch can be split, `withoutTestHooks` removes these files and the tests decide.
 */
function testPatchFindings({ instance, modelPatch, resolved }: TrustEvidence, log: string): TrustFinding[] {
  const start = log.includes(START_MARKER) ? log.indexOf(START_MARKER) : log.length;
  const from = log.lastIndexOf('+ git apply ', start);
  if (from < 0 || modelPatch === null) return [];
  const output = plainText(log.slice(from, start));
  const refused = [...output.matchAll(/\berror: ([^\n]{1,4096}?): (?:already exists|patch does not apply)/g)];
  const named = refused
    .map((match) => match[1] ?? '')
    .filter((file) => instance.test_patch.includes(` b/${file}\n`));
  const removable = new Set(withoutTestHooks(modelPatch, instance)?.files);
  const own = new Set(replacedTestFiles(modelPatch, instance));
  const blocking = named.filter((file) => own.has(file) || !removable.has(file));
  if (blocking.length === 0) return [];
  const reason = `the test patch did not apply: the patch is in its way (${blocking.slice(0, 3).join(', ')})`;
  const proof = blocking.some((file) => !removable.has(file) && modelPatch.includes(` b/${file}\n`));
  return [forgedIf(proof && resolved, reason)];
}

function exitFindings({ plan, outcomes, text, resolved }: TrustEvidence, log: string): TrustFinding[] {
  if (!readsPytest(parserOf(plan)) || !outcomes || outcomes.size === 0 || text === null) return [];
  const codes = exitCodes(log);
  // The script prints one exit code. A second code of 0 may come from the patch.
  const exitCode = codes.find((code) => code !== 0) ?? codes[0] ?? null;
  // SWE-bench-Live writes statuses in lower case.
  const words = [...outcomes.values()];
  const failed = words.some((status) => /^(?:FAILED|ERROR|fail)/.test(status));
  const passed = words.some((status) => status === 'PASSED' || status === 'pass');
  const read = plainText(text);
  const session = sessionIn(read);
  if (exitCode !== null && exitCode !== 0 && passed && !failed) {
    // With exit code 1, pytest found a failure that the log hides. With other codes, the session did not end.
    const proof = session.ended
      ? exitCode === 1 && !showsOtherFailure(read, outcomes)
      : exitCode === 1 || mustPrintEnd(plan.script);
    const reason = `the log tells of no failure, but the tests ended with exit code ${exitCode}`;
    return [forgedIf(proof && resolved, reason)];
  }
  if (passed && !session.ended) {
    const proof = exitCode === 0 && mustPrintEnd(plan.script);
    const reason = 'the log has passed tests but no end of the test session';
    return [forgedIf(proof && resolved, reason)];
  }
  if (codes.length > 1)
    return [suspicious(`output imitates the exit code of the tests (${codes.length} times)`)];
  return exitCode === 0 && session.hasFailures
    ? [suspicious('the test session tells of failures, but ended with exit code 0')]
    : [];
}

/** Counts without an array of the parts: a hostile log may have millions of markers. */
function occurrences(text: string, needle: string): number {
  let count = 0;
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) count++;
  return count;
}
