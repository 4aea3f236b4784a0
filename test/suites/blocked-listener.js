'use strict'

// A preload beside longstack's own: reports of blocking callbacks go to a listener, since on a busy machine
// lines on stderr would be differences of the tests that read it.

require('../..').on('blocked', () => {})
