'use strict'

// Warnings of longstack itself: to listeners of `warning`, or as one line on stderr where there is none. Each
// code is reported once; no stream of the program's is written to.

const fs = require('node:fs')

function createWarnings () {
  /** @type {Set<(event: any) => void>} */
  const listeners = new Set()
  /** @type {Set<string>} */
  const reported = new Set()

  return {
    listeners,

    /** @param {string} code @param {string} message */
    warn (code, message) {
      if (reported.has(code)) return
      reported.add(code)
      if (listeners.size === 0) return printLine(`longstack: ${message}`)
      const warning = Object.assign(new Error(message), { code: `LONGSTACK_WARN_${code}` })
      for (const listener of listeners) {
        try {
          listener(warning)
        } catch {}
      }
    }
  }
}

/** Writes one line to stderr, synchronously. @param {string} line */
function printLine (line) {
  try {
    fs.writeSync(2, `${line}\n`)
  } catch {}
}

/** Prints one line for the whole process, whichever thread calls. @param {string} sentence */
function printFromMainThread (sentence) {
  if (require('node:worker_threads').isMainThread) printLine(`longstack: ${sentence}`)
}

/**
 * Returns whether an enabled hook makes a caught stack overflow fatal on a version of Node (CVE-2025-59466).
 * No program can prevent that.
 * @param {string} version
 */
function isUnsafeVersion (version) {
  const [major, minor] = version.split('.').map(Number)
  /** @type {Record<number, number>} first safe minor */
  const safe = { 20: 20, 22: 22, 24: 13, 25: 3 }
  return major < 20 || major === 21 || major === 23 || minor < (safe[major] ?? 0)
}

/** Returns the first line of a thrown value's message. @param {unknown} thrown */
function messageOf (thrown) {
  try {
    return String(/** @type {any} */ (thrown)?.message ?? thrown).split('\n', 1)[0].slice(0, 200)
  } catch {
    return 'a value that cannot be shown'
  }
}

module.exports = { createWarnings, printFromMainThread, printLine, messageOf, isUnsafeVersion }
