/** Ends an attempt with a result: commits the result, ends the attempt in the journal, and logs one line. */
import { summaryOf } from './attemptlog.ts';
import { type Conclusion, commitResult, failureIn } from './commitresult.ts';
import { type AfterAttempt, type AttemptContext, DONE, ignoreIfEnded, untilTakenOver } from './context.ts';
import { attemptEnd, endAttempt } from './endattempt.ts';
import { dropResumableWork } from './resume.ts';

/** Throws the errors of commitResult. */
export async function commitAttempt(context: AttemptContext, conclusion: Conclusion): Promise<AfterAttempt> {
  const { claimed, services, clock, log, trace } = context;
  const { job, attempt, claim, run, instance, previous } = claimed;
  const family = 'value' in instance ? instance.value.family : undefined;
  const failure = failureIn(conclusion);
  const won = await commitResult(
    { ...conclusion, job, attempt, claim, run, family, trace, clock },
    services,
    untilTakenOver(context),
  );
  const end = failure
    ? attemptEnd.failed(failure.stage, failure.class, failure.message)
    : attemptEnd.done(won);
  // The result is committed, even if the attempt is ended from outside before Redis accepts this journal entry.
  await endAttempt(context, end).catch(ignoreIfEnded(context));
  await dropResumableWork(services.farm, previous, services.log);
  services.metrics.attempts.inc({ class: failure?.class ?? (won ? 'done' : 'late') });
  const { fields, sentence } = summaryOf(conclusion, { won, trace, previous, seconds: clock.seconds() });
  log.info(fields, sentence);
  return DONE;
}
