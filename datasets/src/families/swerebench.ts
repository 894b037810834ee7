/**
 * Reads rows of SWE-rebench V1: SWE-bench's columns, with commands and parser in `install_config`. Source of the rules:
 * SWE-rebench/SWE-bench-fork 39316f7, a modified swebench 4.0.3.
 */
import { recordExitCode, swebenchScript } from '@swefarm/grading';
import { type Instance, SwefarmError } from '@swefarm/shared';
import { asObject, type FieldReader, type Row } from '../fields/fields.ts';
import { harnessImage, withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { basics, imageOr, parserOf, readTests, SWEBENCH_APPLY } from './planned.ts';

export const sweRebench: Family = {
  name: 'swe-rebench',
  columns: ['install_config'],
  fits: ({ install_config }) => {
    const config = asObject(install_config);
    return config !== null && 'log_parser' in config && ('python' in config || 'pip_packages' in config);
  },
  read: readRebench,
};

const LOCALE = 'LANG=C.UTF-8 LC_ALL=C.UTF-8 ';

function readRebench(read: FieldReader): InstanceDraft {
  const config = read.object('install_config', 'export the column as JSON');
  const common = basics(read, 'hints_text', 'version', 'patch', 'test_patch');
  const instance: Instance = {
    ...common,
    ...readTests(read),
    family: 'swe-rebench',
    image: withTag(imageOr(read, harnessImage('swerebench', common.instance_id))),
    needs_egress: false,
  };
  return {
    ...instance,
    environment: { workdir: '/testbed' },
    plan: {
      grader: 'swe-rebench',
      apply: SWEBENCH_APPLY,
      blank: 'ends',
      script: recordExitCode(scriptOf(read, instance, config)),
      timeout: 1800,
      outcomes: {
        from: 'log',
        dialect: 'swe-rebench',
        parser: parserOf(read, 'install_config.log_parser', config.log_parser, 'swe-rebench'),
      },
      verdict: { rule: 'swebench' },
    },
  };
}

/** Returns the script that swebench 4.0.3 makes for a Python repository with the specification `install_config`. */
function scriptOf(read: FieldReader, instance: Instance, config: Row): string {
  const command = read.commands('install_config.test_cmd', config.test_cmd).join('\n');
  if (command === '') read.refuse('no test command', 'install_config.test_cmd', 'a command', config.test_cmd);
  const install = read.commands('install_config.install', config.install).join('\n');
  try {
    return swebenchScript(instance, {
      language: 'py',
      testCommands: [LOCALE + command],
      install: install === '' ? null : LOCALE + install,
      evalCommands: [],
      build: [],
      parser: '',
      evalType: 'pass_and_fail',
    });
  } catch (error) {
    if (!(error instanceof SwefarmError)) throw error;
    read.complain('test_patch', 'a unified diff', instance.test_patch, error.message);
    return '';
  }
}
