'use strict'

// A child process and the questions that are asked of it, one at a time.

const { spawn } = require('node:child_process')

const KEPT = 8_000 // characters of what a child complained about

/** What went wrong in a child, in a sentence. */
class ChildFailure extends Error {}

/** @param {string} stderr @returns {string} the line that says most */
function complaint (stderr) {
  const lines = stderr.split('\n').map((line) => line.trim()).filter(Boolean)
  const said = lines.find((line) => /^(FATAL ERROR|(Uncaught )?[A-Za-z]*Error\b.*:|RangeError|.*\[ERR_)/.test(line)) ?? lines.at(-1) ?? ''
  return said.slice(0, 160)
}

/**
 * Starts a child that answers.
 * @param {string} command
 * @param {string[]} args
 * @param {{ env: Record<string, string | undefined>, cwd: string }} options
 */
function startChild (command, args, options) {
  let stderr = ''
  /** @type {((answer: any) => void) | undefined} */
  let answered
  /** @type {((error: Error) => void) | undefined} */
  let failed
  /** @type {Error | undefined} */
  let dead

  // bubbleprof's collector writes a word to 3 for some programs.
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'ipc'] })
  child.stdio[3]?.on('error', () => {})
  child.stdio[3]?.on('data', () => {})
  child.stderr?.setEncoding('utf8').on('data', (text) => { stderr = (stderr + text).slice(-KEPT) })
  child.on('message', (/** @type {any} */ answer) => answer.error === undefined ? answered?.(answer) : failed?.(new ChildFailure(answer.error)))
  const die = (/** @type {Error} */ error) => {
    dead ??= error
    failed?.(dead)
  }
  const closed = new Promise((resolve) => {
    child.on('error', (error) => {
      die(error)
      resolve(undefined)
    })
    child.on('close', (code, signal) => {
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`
      const why = /heap out of memory/.test(stderr) ? 'out of memory' : complaint(stderr)
      die(new ChildFailure(why === '' ? how : `${why} (${how})`))
      resolve(undefined)
    })
  })

  return {
    /**
     * @param {object | undefined} question nothing waits for the child's first word
     * @param {number} timeout ms
     * @returns {Promise<any>}
     */
    request (question, timeout) {
      return new Promise((resolve, reject) => {
        if (dead !== undefined) return reject(dead)
        const timer = setTimeout(() => reject(new ChildFailure(`no answer within ${timeout / 1000} s`)), timeout)
        answered = (answer) => {
          clearTimeout(timer)
          resolve(answer)
        }
        failed = (error) => {
          clearTimeout(timer)
          reject(error)
        }
        if (question !== undefined) child.send(question, (error) => error !== null && failed?.(error))
      })
    },

    /** The reason of a death that is just being reported. @param {number} ms */
    async death (ms) {
      /** @type {NodeJS.Timeout | undefined} */
      let timer
      await Promise.race([closed, new Promise((resolve) => { timer = setTimeout(resolve, ms) })])
      clearTimeout(timer)
      return dead
    },

    /** Ends the child, whatever it does. */
    async end () {
      child.removeAllListeners('message')
      if (child.connected) child.send({ command: 'end' }, () => {})
      const timer = setTimeout(() => child.kill('SIGKILL'), 1_000)
      await closed
      clearTimeout(timer)
    }
  }
}

/** @typedef {ReturnType<typeof startChild>} ChildChannel */

module.exports = { startChild, ChildFailure }
