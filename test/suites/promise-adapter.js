'use strict'

// What promises-aplus-tests wants: the promises of the engine.

module.exports = {
  deferred () {
    const deferred = {}
    deferred.promise = new Promise((resolve, reject) => Object.assign(deferred, { resolve, reject }))
    return deferred
  }
}
