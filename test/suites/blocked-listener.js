'use strict'

// A preload before longstack's own: reports of blocking callbacks go to a listener, since on a busy machine
// lines on stderr would be differences of the tests that read it. A program that may not read longstack's
// files runs without it.

try {
  require('../..').on('blocked', () => {})
} catch {}
