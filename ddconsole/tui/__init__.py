"""What is seen. The only room that imports textual."""
