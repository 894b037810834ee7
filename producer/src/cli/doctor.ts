/** `swefarm doctor`: checks everything that a run needs, one line each: ok, warn or fail, with the remedy. */

import { ANY_MODEL, asTree, diagnose, runSettings } from '@swefarm/runs';
import {
  environmentSecret,
  type Finding,
  originsOf,
  PolicyConfig,
  renderFinding,
  UsageError,
} from '@swefarm/shared';
import { terminalSafe } from '@swefarm/trajectories';
import { type Command, Option } from 'commander';
import { EXIT } from './exit.ts';
import { addFarmOptions, addProbeOptions, type Flags, producerConfig, runFlags } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, styled } from './terminal.ts';

export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .addOption(
      new Option('--policy-url <url>', 'OpenAI-compatible endpoint to check (repeatable)').argParser(
        (url: string, earlier: string[] | undefined) => [...(earlier ?? []), url],
      ),
    )
    .option('--model <name>', 'model to ask (default: the first one that the endpoint serves)')
    .option('--api-key-env <variable>', 'environment variable that holds the key of the policy')
    .option(
      '--require-tokens',
      'check also whether a training run could use the token ids: three turns, thinking and a tool call',
    )
    .addOption(
      new Option('--token-mode <mode>', 'with --require-tokens: the token mode of the run')
        .choices(PolicyConfig.shape.token_mode.unwrap().options)
        .default('token-in'),
    )
    .option(
      '--tokenizer <folder>',
      "for token-in: folder with tokenizer.json and chat template (default: the endpoint's /tokenize)",
    )
    .option('--pictures', 'check also whether the endpoints take pictures, which SWE-bench Multimodal shows')
    .option('--json', 'print JSON (the default in a pipe)');
  addProbeOptions(command);
  addFarmOptions(command).action(async (flags: Flags) => {
    const config = producerConfig(flags);
    const policyUrls = (flags.policyUrl as string[] | undefined) ?? [];
    const secret =
      flags.apiKeyEnv === undefined
        ? config.policy_api_key
        : environmentSecret(String(flags.apiKeyEnv), '--api-key-env');
    const findings = await diagnose({
      config,
      policyUrls,
      policy: policyOf(flags),
      acceptRawLogprobs: flags.acceptRawLogprobs === true,
      pictures: flags.pictures === true,
      apiKey: secret && { secret, origins: originsOf(policyUrls) },
      signal: listenForStop().draining,
    });
    if (process.stdout.isTTY && flags.json !== true) await print(findings.map(describe).join('\n'));
    else for (const finding of findings) await print(JSON.stringify(finding));
    process.exitCode = findings.some((finding) => finding.status === 'fail') ? EXIT.unusable : 0;
  });
}

/** The policy that a run's flags describe; a missing model is found by asking the endpoint. Throws UsageError naming the flag. */
function policyOf(flags: Flags): PolicyConfig {
  const { policy } = runSettings({ flags: runFlags(flags) });
  const read = PolicyConfig.safeParse({ ...asTree(policy), urls: [], model: flags.model ?? ANY_MODEL });
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new UsageError(`${issue?.path.join('.')}: ${issue?.message}`);
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

const describe = (finding: Finding): string =>
  renderFinding({ ...finding, detail: terminalSafe(finding.detail) }, (status, mark) =>
    styled(COLOURS[status], mark, process.stdout),
  );
