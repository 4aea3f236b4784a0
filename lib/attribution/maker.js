'use strict'

// In whose run was an error made? What the allocation clock (attribution/allocation-clock.js) says, as a context.

const { contextOf, OWN_WORK, typeOfStep } = require('../context/context')

/** @typedef {import('../context/context').Context} Context */

/**
 * @param {ReturnType<typeof import('./allocation-clock').createAllocationClock>} markers
 * @returns {(error: object) => { context: Context, isNative: boolean } | undefined} isNative: made by Node's native code, if it has
 *   no frames that ran
 */
function createMakerLookup (markers) {
  return (error) => {
    const made = markers.locate(error)
    if (made === undefined) return undefined
    // Between two runs Node's native code makes the error that the second one is called with. In light mode that is also when
    // what follows an await runs.
    const isNative = made.chain === 0
    const step = isNative ? made.next : made
    if (step === undefined || step.chain === 0 || (isNative && !isReportedBy(error, step))) return undefined
    const context = contextOfStep(step)
    return context === undefined ? undefined : { context, isNative }
  }
}

/** @param {import('./allocation-clock').Made} step @returns {Context | undefined} */
function contextOfStep ({ chain, ref, span }) {
  const context = contextOf(chain, ref, span)
  return context === OWN_WORK ? undefined : context
}

/**
 * Says whether an error tells of a failed system call of the kind that a request makes.
 * @param {object} error
 * @param {import('./allocation-clock').Made} request
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
