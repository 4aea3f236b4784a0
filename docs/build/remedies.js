'use strict'

// Examples and remedies that docs/errors.md adds to the messages of lib/errors.js, lib/reasons.js,
// lib/doctor.js and of warnings. tsc checks that every error, reason and problem has one;
// a test checks the warnings.

/**
 * @typedef {{ example: any[], remedy: string }} ErrorText example: details that a caller can cause
 * @typedef {{ detail?: string, remedy: string }} ReasonText
 * @typedef {{ meaning: string, remedy: string }} WarningText
 */

const NOTHING = 'Nothing to do.'
const REPORT = 'Please report it with the version of Node and the platform.'
const JS_ENGINE = 'longstack uses the JavaScript engine.'
const TRIAL = 'The result is kept until Node or longstack changes, or the file named by `trace.doctor()` ' +
  'is deleted.'
const RETRIED = 'longstack tries again after ten minutes, or once the file named by `trace.doctor()` ' +
  'is deleted.'

/** @type {Record<import('../../lib/errors').ErrorKey, ErrorText>} */
const errors = {
  UNKNOWN_SUBSYSTEM: {
    example: ['TPC', 'TCP'],
    remedy: 'Correct the name. Write an `AsyncResource` type in capitals as `type:NAME`.'
  },
  INVALID_FILTER: { example: ['TCP'], remedy: 'Pass an array, even for a single name.' },
  UNKNOWN_OPTION: { example: ['frame', 'frames'], remedy: 'See [options](options.md).' },
  UNKNOWN_VARIABLE: {
    example: ['LONGSTACK_FRAME', 'LONGSTACK_FRAMES'],
    remedy: 'See [options](options.md). Reported on stderr, never thrown.'
  },
  INVALID_OPTION: {
    example: ['frames', 'ten', 'an integer from 1 to 200'],
    remedy: 'See [options](options.md).'
  },
  INVALID_OPTIONS: {
    example: [42],
    remedy: 'Call `trace.enable()`, `trace.enable([…])` or `trace.enable({…})`.'
  },
  NOT_AVAILABLE: {
    example: ['trace.nativeHooks', 'no binary for darwin-arm64, ABI 137'],
    remedy: 'It requires the native addon: see [engine codes](#engine).'
  },
  INVALID_OUTPUT: {
    example: ['ftp://host/spans', 'ftp: is none of http:, https: and file:'],
    remedy: 'See [where spans go](sinks.md).'
  },
  UNKNOWN_SETTING: { example: ['slowr', 'slower'], remedy: 'See [where spans go](sinks.md).' },
  INVALID_SETTING: {
    example: ['sample', 1.5, 'a ratio from 0 to 1'],
    remedy: 'See [where spans go](sinks.md).'
  },
  INVALID_HANDLER: { example: ['The listener of trace.on', 42], remedy: 'Pass a function.' },
  INVALID_SERVER: {
    example: [{}],
    remedy: 'Pass the server itself, not the framework around it. See [intercept](intercept.md).'
  },
  INTERCEPT: {
    example: ['upper', { returned: 'text' }],
    remedy: 'Correct the transform. The connection was closed with this error; the server continues.'
  },
  INVALID_SPAN: {
    example: [undefined],
    remedy: "Call `trace.span('name', fn)` or `trace.span('name', { … }, fn)`."
  },
  INVALID_PROFILE: {
    example: ['seconds', -1, 'a number above 0, at most 1800'],
    remedy: 'See [profile](profile.md).'
  },
  UNKNOWN_PROFILE_OPTION: { example: ['second', 'seconds'], remedy: 'See [profile](profile.md).' },
  PROFILE_RUNS: { example: [], remedy: 'Await the first profile, or share its promise.' },
  NOT_ENABLED: {
    example: ['trace.profile'],
    remedy: 'Call `trace.enable()`, or start the program with `node -r longstack/register`.'
  },
  INVALID_PENDING: {
    example: ['olderThanMs', '1 s', 'a number of ms, at least 0'],
    remedy: 'See [handles](handles.md#what-is-awaited-and-never-settled).'
  },
  UNKNOWN_PENDING_OPTION: {
    example: ['olderThan', 'olderThanMs'],
    remedy: 'See [handles](handles.md#what-is-awaited-and-never-settled).'
  },
  INVALID_HOOK: { example: [undefined], remedy: 'Pass at least one of the three.' },
  INVALID_SNAPSHOT: {
    example: ['trace.diff', undefined],
    remedy: 'Call `trace.snapshot()` first, in the same thread.'
  },
  INVALID_TARGET: { example: [42], remedy: 'Pass the object itself, not its id or name.' },
  UNKNOWN_EVENT: { example: ['wraning', 'warning'], remedy: 'Correct the name.' }
}

/** @type {Record<import('../../lib/reasons').EngineCode, ReasonText>} */
const engine = {
  NOT_ENABLED: { remedy: 'Call `trace.enable()`.' },
  ASKED: { remedy: '`capture: \'js\'` was set.' },
  SELF_TEST_PASSED: { remedy: 'Nothing to do: longstack uses the native engine.' },
  SLOWER_KEY: { remedy: `longstack uses the native engine, but it is slower. ${REPORT}` },
  SELF_TEST_FAILED: { remedy: `${JS_ENGINE} ${REPORT}` },
  UNSUPPORTED_BUILD: { detail: 'v8_enable_pointer_compression', remedy: JS_ENGINE },
  NO_BINARY: {
    detail: 'darwin-arm64, ABI 137',
    remedy: `${JS_ENGINE} On Linux with a compiler, run \`npm run build\`.`
  },
  NOT_INSTALLED: {
    detail: 'longstack-linux-x64@0.1.0',
    remedy: `${JS_ENGINE} Install without \`--omit=optional\`, with a lock file that covers all platforms.`
  },
  OTHER_VERSION: {
    detail: 'longstack-linux-x64@0.0.9, expected 0.1.0',
    remedy: `${JS_ENGINE} Reinstall both packages: their versions must match.`
  },
  DAMAGED_BINARY: { remedy: 'Reinstall longstack.' },
  ADDONS_FORBIDDEN: {
    detail: '--no-addons',
    remedy: 'Remove the flag, or allow addons with `--allow-addons`.'
  },
  READ_FORBIDDEN: { remedy: 'Allow reading the package with `--allow-fs-read`.' },
  LOAD_FAILED: {
    detail: 'libstdc++.so.6: cannot open shared object file',
    remedy: 'Build it on this machine: `npm run build`.'
  },
  TRIAL_CRASHED: { detail: 'SIGSEGV', remedy: `${JS_ENGINE} ${TRIAL} ${REPORT}` },
  TRIAL_HUNG: { detail: '1.5 s', remedy: `${JS_ENGINE} The machine may have been busy. ${RETRIED}` },
  TRIAL_FAILED: { detail: 'self-test failed', remedy: `${JS_ENGINE} ${RETRIED} ${REPORT}` },
  TRIAL_IMPOSSIBLE: {
    detail: '--permission forbids child processes',
    remedy: `${JS_ENGINE} Start Node once without the permission model, or allow \`--allow-child-process\`.`
  }
}

/** @type {Record<import('../../lib/reasons').ClockCode, ReasonText>} */
const clock = {
  NO_NATIVE_ENGINE: { remedy: 'See [engine](#engine).' },
  SELF_TEST_PASSED: { remedy: 'Nothing to do: the clock is on.' },
  NOT_MOVING: { remedy: 'Start Node without `--minor-ms`.' },
  NOT_UPWARDS: { remedy: REPORT }
}

/** @type {Record<import('../../lib/doctor').ProblemCode, string>} */
const problems = {
  FAULT: 'Please report the sentence and the code, `faultCode`.',
  SEVERAL_COPIES: 'Nothing to do if they have the same version. Otherwise preload the copy that the ' +
    'program or the test runner plug-in resolves.',
  TRACING_OFF: 'Enable tracing.',
  UNSAFE_NODE: 'Update Node.',
  ENGINE_JS: 'See `engineCode`, [above](#engine).',
  CLOCK_OFF: 'See `clockCode`, [above](#clock).',
  OTHER_DESTROY_HOOK: 'Find the library that calls `async_hooks.createHook` with `destroy`.',
  ERRORS_OFF: NOTHING,
  FORMATTER_FIXED: 'Load longstack before the code that freezes `Error`, or print `trace.stack(error)`.',
  FORMATTER_REPLACED: NOTHING,
  NO_FRAMES: 'Set `Error.stackTraceLimit` to 10 or more.',
  FEW_FRAMES: 'Set `Error.stackTraceLimit` to 10 or more, or use `trace.stack(error)`.',
  MANY_FRAMES: 'Set `Error.stackTraceLimit` to less than 200.',
  PERMISSIONS: 'Allow what you need: `addon` for the native engine and `blocked`, `worker` for OTLP, ' +
    '`fs.write` for spans in files.',
  BUDGET: 'Raise [`budget`](options.md#budget), or set a [`filter`](options.md#filter).',
  DROPPED_HOPS: 'Raise [`budget`](options.md#budget).'
}

/** Without LONGSTACK_WARN_. @type {Record<string, WarningText>} */
const warnings = {
  ENGINE: {
    meaning: 'Releases include a binary for this platform and Node version, but it is missing here or does ' +
      'not load. Printed once per machine.',
    remedy: 'See [engine](#engine).'
  },
  FROZEN: {
    meaning: '`Error.prepareStackTrace` cannot be set, so errors keep their short stack.',
    remedy: 'Load longstack before the code that freezes `Error`, or print `trace.stack(error)`.'
  },
  HOOK: { meaning: 'A callback of `trace.hook` threw.', remedy: 'Correct the callback; it is called again.' },
  HANDLER: {
    meaning: 'A handler of `trace.onError` threw.',
    remedy: 'Correct the handler; the error counts as unhandled.'
  },
  SPAN: {
    meaning: "A listener of `trace.on('span')` threw.",
    remedy: 'Correct the listener; it is called again.'
  },
  BLOCKED_LISTENER: {
    meaning: "A listener of `trace.on('blocked')` threw.",
    remedy: 'Correct the listener; it is called again.'
  },
  INTERCEPT: {
    meaning: 'A transform of `trace.intercept` threw or did not return bytes; its connection was closed.',
    remedy: 'Correct the transform: [`LONGSTACK_ERR_INTERCEPT`](#errors).'
  },
  BLOCKED: {
    meaning: 'Blocking callbacks cannot be detected: the native engine is missing, or no thread could be ' +
      'started.',
    remedy: 'The message says why. See [engine](#engine). Under the permission model, add `--allow-addons`.'
  },
  SOCKET: {
    meaning: 'The process cannot listen on [`socket`](options.md#socket).',
    remedy: 'The message says why: for example, a file has that name, or the directory is missing.'
  },
  SPANS_NO_EXPORTER: {
    meaning: 'The package that sends spans to an OTLP collector is not installed.',
    remedy: '`npm install @opentelemetry/exporter-trace-otlp-http`'
  },
  SPANS_UNSENT: {
    meaning: 'A collector does not accept spans; they are dropped and counted in `trace.stats().spans`.',
    remedy: 'Check its address and that it is running. See [opentelemetry.md](opentelemetry.md).'
  },
  SPANS_SLOW_READER: {
    meaning: 'The reader of a pipe is too slow; spans are dropped and counted.',
    remedy: 'Write to a file, or write a [sample](sinks.md).'
  },
  RECORD_SLOW_READER: {
    meaning: 'The reader of a pipe is too slow; blocks of the recording are dropped and counted.',
    remedy: 'Record to a file.'
  },
  BOX: {
    meaning: 'There is no [black box](blackbox.md). The message says why.',
    remedy: 'Use a directory that belongs to this user and that no other may write to; remove old boxes.'
  },
  BOX_DEAD: {
    meaning: 'The directory of [`box`](options.md#box) has boxes of processes that died.',
    remedy: 'Read them with `longstack report`, and remove them.'
  },
  SPANS_THREAD: {
    meaning: 'The thread that writes spans has failed, does not respond, or gets too little CPU; some ' +
      'spans are lost.',
    remedy: "After a failure, the program's own thread writes the following spans."
  },
  SPANS_FAILED: {
    meaning: 'An output of spans could not be set up, or failed without a system error.',
    remedy: 'The message says why.'
  }
}

module.exports = { errors, reasons: { engine, clock }, problems, warnings }
