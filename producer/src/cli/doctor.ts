/** `swefarm doctor`: checks everything that a run needs. Prints ok, warn or fail for each check, with the remedy. */
import { ANY_MODEL, asTree, diagnose, type RunFlagValues, runSettings } from '@swefarm/runs';
import { type Finding, originsOf, PolicyConfig, renderFinding, UsageError } from '@swefarm/shared';
import { terminalSafe } from '@swefarm/trajectories';
import { nextCommand } from '../view/nextcommand.ts';
import { choice, command, defaulted, flag, list, text } from './declare.ts';
import { EXIT } from './exit.ts';
import { apiKeyOf, FARM, PROBE, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, printStatus, quoted, styled } from './terminal.ts';

export const doctor = command({
  options: {
    '--policy-url <url>': list('OpenAI-compatible endpoint to check (repeatable)'),
    '--model <name>': text('model to ask (default: the first one that the endpoint serves)'),
    '--api-key-env <variable>': text('environment variable with the key of the policy'),
    '--require-tokens': flag(
      'check also whether a training run could use the token ids: three turns, thinking and a tool call',
    ),
    '--token-mode <mode>': defaulted(
      choice(
        'with --require-tokens: the token mode of the run',
        PolicyConfig.shape.token_mode.unwrap().options,
      ),
      'token-in',
    ),
    '--tokenizer <folder>': text(
      "for token-in: folder with tokenizer.json and chat template (default: the endpoint's /tokenize)",
    ),
    '--pictures': flag('check also whether the endpoints take pictures, which SWE-bench Multimodal shows'),
    '--json': flag('print JSON (the default in a pipe)'),
    ...PROBE,
    ...FARM,
  },
  example: 'swefarm doctor --policy-url http://localhost:8000/v1 --require-tokens',
  async run(o) {
    const config = producerConfig(o);
    const { policyUrl: policyUrls = [], tokenMode, tokenizer } = o;
    const secret = apiKeyOf(o.apiKeyEnv, config.policy_api_key);
    const settings = { ...o.sampling, tokenMode, tokenizer, requireTokens: o.requireTokens || undefined };
    const findings = await diagnose({
      ...{ config, policyUrls },
      policy: policyOf(settings, o.model),
      acceptRawLogprobs: o.acceptRawLogprobs,
      pictures: o.pictures,
      apiKey: secret && { secret, origins: originsOf(policyUrls) },
      signal: listenForStop().draining,
    });
    if (process.stdout.isTTY && !o.json) {
      await print(findings.map(describe).join('\n'));
      const checked = {
        redisUrl: o.farm.redisUrl,
        hasFarm: config.redis_url !== null,
        policyUrls,
        model: o.model,
      };
      const next = nextCommand(findings, checked);
      printStatus(
        next
          ? `next: npx swefarm ${next.map(quoted).join(' ')}`
          : 'next: follow the remedies above, and run this command again',
      );
    } else for (const finding of findings) await print(JSON.stringify(finding));
    return findings.some(({ status }) => status === 'fail') ? EXIT.unusable : EXIT.allJudged;
  },
});

/** Returns the policy that the flags of a run describe. Without `model`, the checks ask the endpoint for one. Throws UsageError. */
function policyOf(flags: RunFlagValues, model = ANY_MODEL): PolicyConfig {
  const { policy } = runSettings({ flags });
  const read = PolicyConfig.safeParse({ ...asTree(policy), urls: [], model });
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new UsageError(`${issue?.path.join('.')}: ${issue?.message}`);
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

const describe = (finding: Finding): string =>
  renderFinding({ ...finding, detail: terminalSafe(finding.detail) }, (status, mark) =>
    styled(COLOURS[status], mark, process.stdout),
  );
