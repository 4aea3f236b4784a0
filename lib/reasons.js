'use strict'

// Reasons for the engine and the clock in force: stable codes, and the messages that trace.stats() and
// trace.doctor() print for them. Loaded on the first such call.

/**
 * @typedef {{ code: string, detail?: string }} Reason detail: process-specific part of the message
 * @typedef {(detail?: string) => string} Sentence
 */

/** @satisfies {Record<string, Sentence>} */
const engine = {
  NOT_ENABLED: () => 'not enabled yet',
  ASKED: () => 'requested',
  SELF_TEST_PASSED: () => 'self-test passed',
  SLOWER_KEY: (detail) => `with the slower key: ${detail ?? 'self-test failed'}`,
  SELF_TEST_FAILED: (detail) => `self-test failed${detail === undefined ? '' : `: ${detail}`}`,
  UNSUPPORTED_BUILD: (detail) => `this Node was built with ${detail}`,
  NO_BINARY: (detail) => `no binary for ${detail}`,
  NOT_INSTALLED: (detail) => `the package with the binary is not installed: npm install ${detail}`,
  OTHER_VERSION: (detail) => `the package with the binary has another version: ${detail}`,
  DAMAGED_BINARY: () => 'the binary is damaged',
  ADDONS_FORBIDDEN: (detail) => `${detail} forbids addons`,
  READ_FORBIDDEN: () => '--permission forbids reading the binary',
  LOAD_FAILED: (detail) => `failed to load the native addon: ${detail}`,
  TRIAL_CRASHED: (detail) => `its trial in a child process ended with ${detail}`,
  TRIAL_HUNG: (detail) => `its trial in a child process did not end within ${detail}`,
  TRIAL_FAILED: (detail) => `its trial in a child process failed: ${detail}`,
  TRIAL_IMPOSSIBLE: (detail) => `it is untested on this platform and V8, and a trial is impossible: ${detail}`
}

/** @satisfies {Record<string, Sentence>} */
const clock = {
  NO_NATIVE_ENGINE: () => 'only the native engine has an allocation clock',
  SELF_TEST_PASSED: () => 'self-test passed',
  NOT_MOVING: () => 'this V8 collects young objects without moving them',
  NOT_UPWARDS: () => 'this heap does not allocate upwards'
}

/**
 * @typedef {keyof typeof engine} EngineCode
 * @typedef {keyof typeof clock} ClockCode
 * @typedef {{ code: EngineCode, detail?: string }} EngineReason
 */

const sentences = { engine, clock }

/**
 * Formats a reason, for example "no binary for linux-x64, ABI 137".
 * @param {keyof typeof sentences} subject
 * @param {Reason} reason
 * @returns {string}
 */
function explain (subject, { code, detail }) {
  return /** @type {Record<string, Sentence>} */ (sentences[subject])[code](detail)
}

module.exports = { explain }
