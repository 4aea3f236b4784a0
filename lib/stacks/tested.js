'use strict'

// Platforms and V8 versions on which every change tests the native engine. There the addon is loaded
// directly; elsewhere a separate process tries it first (trial.js).

// The first two numbers of V8's version: a V8 branch has one layout of frames and objects. Later numbers are
// fixes that Node takes into the branch; the self-test covers these.
const V8 = ['11.3', '12.4', '13.6', '14.6'] // of Node 20, 22, 24, 26

/** Names as in ../platform.js. */
const PLATFORMS = ['linux-x64', 'linux-arm64', 'linuxmusl-x64']

/** @param {string} target the running platform */
function isTested (target) {
  return PLATFORMS.includes(target) && V8.some((version) => process.versions.v8.startsWith(`${version}.`))
}

module.exports = { isTested }
