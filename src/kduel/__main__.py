from kduel.cli import main

main()
