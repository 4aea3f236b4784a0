'use strict'

// Reports a missing platform binary once per machine: without it longstack works, but costs many times as
// much, which nobody would notice. Loaded only if there is no binary.

const { ABIS, PLATFORMS, ownManifest, target } = require('../platform')
const { explain } = require('../reasons')
const { warn } = require('../warnings')
const { MISSING, isFirst } = require('./trial')

/**
 * Reports the reason if releases have a binary for this platform and this Node.
 * @param {import('../reasons').EngineReason} reason
 */
function reportMissing (reason) {
  if (!MISSING.includes(reason.code) || !PLATFORMS.includes(target())) return
  if (!Object.values(ABIS).includes(Number(process.versions.modules)) || !isFirst(reason)) return
  warn('ENGINE', `the native engine is missing: ${explain('engine', reason)}. ` +
    `The JavaScript engine is used, at ten times the cost or more. ${remedy(reason)}`)
}

/** @param {import('../reasons').EngineReason} reason @returns {string} a sentence */
function remedy ({ code }) {
  const inCheckout = code === 'NO_BINARY' && ownManifest().optionalDependencies === undefined
  return inCheckout ? 'npm run build compiles it.' : 'npx --no -- longstack doctor says more.'
}

module.exports = { reportMissing }
