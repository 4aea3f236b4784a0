'use strict'

// The context in whose callback an error was made, by the allocation clock (allocation-clock.js).

const { contextOf, OWN_WORK, typeOfStep } = require('../context/context')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./allocation-clock').AllocationStep} AllocationStep
 *
 * @typedef {object} Maker
 * @property {Context} context
 * @property {boolean} isNative made by Node's native code, if it has no frames that ran
 */

/**
 * @param {ReturnType<typeof import('./allocation-clock').createAllocationClock>} clock
 * @returns {(error: object) => Maker | undefined}
 */
function createMakerLookup (clock) {
  return (error) => {
    const allocation = clock.locate(error)
    if (allocation === undefined) return undefined
    // Between two callbacks Node's native code makes the error that the second one is called with.
    const isNative = allocation.chain === 0
    const step = isNative ? allocation.next : allocation
    if (step === undefined || step.chain === 0 || (isNative && !isReportedBy(error, step))) return undefined
    const context = contextOfStep(step)
    return context === undefined ? undefined : { context, isNative }
  }
}

/** @param {AllocationStep} step @returns {Context | undefined} */
function contextOfStep ({ chain, ref, span }) {
  const context = contextOf(chain, ref, span)
  return context === OWN_WORK ? undefined : context
}

/**
 * Whether an error is of a failed system call of the kind that a request makes.
 * @param {object} error
 * @param {AllocationStep} request
 */
function isReportedBy (error, { chain, ref }) {
  const call = Object.getOwnPropertyDescriptor(error, 'syscall')?.value
  return typeof call === 'string' && fileCalls.has(call) && fileRequests.has(typeOfStep(chain, ref))
}

const fileRequests = new Set(['FSREQCALLBACK', 'FSREQPROMISE'])

const fileCalls = new Set([
  'open', 'read', 'write', 'stat', 'fstat', 'lstat', 'scandir', 'mkdir', 'rmdir', 'unlink', 'rename',
  'access', 'close', 'realpath', 'readlink', 'symlink', 'link', 'chmod', 'fchmod', 'lchmod', 'chown',
  'fchown', 'lchown', 'utime', 'futime', 'lutime', 'truncate', 'ftruncate', 'copyfile', 'opendir',
  'mkdtemp', 'fsync', 'fdatasync', 'statfs', 'rm'
])

module.exports = { createMakerLookup }
