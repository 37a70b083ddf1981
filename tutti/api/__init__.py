"""What every command about objects needs: the user, the place, the answer and its layout.

Objects pass through as the API server sent them (`Object`): what is printed as JSON or YAML is all
of it, and a table reads the few fields it shows wherever they are missing.
"""
