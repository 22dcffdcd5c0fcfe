"""How much of what was asked before is a shared prefix, and what breaks it: pure.

A log of chat requests goes in (`chat_log`), each becomes the text that an engine sees (`prompts`), is cut
into tokens (`tokens`) and looked up in a model of the engine's cache (`blocks`). `breakers` names what made
two prompts differ early, `mending` shows the same requests with that mended, and `report` puts it together.
"""
