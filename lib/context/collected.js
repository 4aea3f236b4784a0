'use strict'

// A full gc is the moment in which it matters what is held. A young object that nobody keeps tells of it.

/**
 * @param {() => void} callback runs after the next full gc, in a turn of the event loop
 * @returns {() => void} asks for one call
 */
function createGcWatch (callback) {
  let armed = false
  const registry = new FinalizationRegistry(() => {
    armed = false
    // A throw here would end the program; one that took the iterators away from arrays makes every loop throw.
    try {
      callback()
    } catch {}
  })
  return () => {
    if (armed) return
    armed = true
    registry.register({}, undefined)
  }
}

module.exports = { createGcWatch }
