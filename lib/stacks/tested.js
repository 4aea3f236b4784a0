'use strict'

// Where the native engine is tested with every change. There the addon is loaded as it is; on any other
// platform or V8 a process of its own tries it first, see trial.js.

// By V8's first two numbers: a branch of V8 has one layout of frames and objects. What Node takes into a
// branch afterwards (the numbers behind) are corrections, which the self-test judges.
const V8 = ['11.3', '12.4', '13.6', '14.6'] // of Node 20, 22, 24, 26

/** As ../platform.js names them. */
const PLATFORMS = ['linux-x64', 'linux-arm64', 'linuxmusl-x64']

/** @param {string} target the running platform */
function isTested (target) {
  return PLATFORMS.includes(target) && V8.some((version) => process.versions.v8.startsWith(`${version}.`))
}

module.exports = { isTested }
