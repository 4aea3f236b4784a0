'use strict'

// Measures the start of a program: node -r X -e 0, in ms of wall time until the process has ended.

const { spawnSync } = require('node:child_process')
const { inTurn } = require('./in-turn')

const MAX_MS = 10_000

/** @param {import('./in-turn').Command} command @returns {{ value: number } | { failed: string }} */
function once ({ node: [command, ...args], options }) {
  const stdio = /** @type {import('node:child_process').StdioOptions} */ (['ignore', 'pipe', 'pipe', 'pipe'])
  const spawnOptions = /** @type {const} */ ({ ...options, encoding: 'utf8', stdio, timeout: MAX_MS })
  const began = performance.now()
  const child = spawnSync(command, [...args, '-e', '0'], spawnOptions)
  const value = performance.now() - began
  const { status, signal, stderr } = child
  const error = /** @type {NodeJS.ErrnoException | undefined} */ (child.error)
  if (status === 0) return { value }
  if (error?.code === 'ETIMEDOUT') return { failed: `does not end within ${MAX_MS / 1000} s` }
  const line = stderr?.trim().split('\n').find((text) => /Error/.test(text))
  return { failed: error?.message ?? line?.slice(0, 160) ?? `exit code ${status ?? signal}` }
}

/** @param {Omit<Parameters<typeof inTurn>[0], 'once' | 'workload'>} plan */
const startUp = (plan) => inTurn({ ...plan, workload: 'start-up', once })

module.exports = { startUp }
